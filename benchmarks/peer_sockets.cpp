// A side of `benchmarks/contest.py cluster`: the time of the system's sockets alone. A request of 4 bytes says how
// many bytes the answer has, from and into one buffer. usage: bench_peer_sockets THREADS
#include "contestant.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr std::size_t most_bytes = std::size_t{100} << 20;

void write_all(int socket, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::write(socket, bytes, count);
    if (n <= 0) std::exit(1);
    bytes += n;
    count -= static_cast<std::size_t>(n);
  }
}
bool read_all(int socket, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::read(socket, bytes, count);
    if (n <= 0) return false;
    bytes += n;
    count -= static_cast<std::size_t>(n);
  }
  return true;
}

/// A connection over loopback with a process that answers.
class Echo {
 public:
  Echo() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener, any, size) != 0 || ::listen(listener, 1) != 0 || ::getsockname(listener, any, &size) != 0) {
      std::exit(1);
    }
    if (::fork() == 0) answer(connected(::accept(listener, nullptr, nullptr)));
    socket_ = connected(::socket(AF_INET, SOCK_STREAM, 0));
    if (::connect(socket_, any, size) != 0) std::exit(1);
    ::close(listener);
  }
  ~Echo() { ::close(socket_); }

  void ask(std::uint32_t bytes) {
    write_all(socket_, reinterpret_cast<const char*>(&bytes), sizeof bytes);
    if (!read_all(socket_, buffer_.data(), bytes)) std::exit(1);
  }

 private:
  static int connected(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  [[noreturn]] static void answer(int socket) {
    std::vector<char> buffer(most_bytes, 1);
    for (std::uint32_t bytes = 0; read_all(socket, reinterpret_cast<char*>(&bytes), sizeof bytes);) {
      write_all(socket, buffer.data(), bytes);
    }
    std::_Exit(0);
  }

  int socket_ = -1;
  std::vector<char> buffer_ = std::vector<char>(most_bytes, 1);
};

}  // namespace

int main() {
  std::signal(SIGCHLD, SIG_IGN);
  dflow::bench::Contestant rows;
  const auto add = [&](const char* name, std::uint32_t bytes) {
    rows.row(name, [=] {
      auto echo = std::make_shared<Echo>();
      return [=] { echo->ask(bytes); };
    });
  };
  add("round trip 4 B", 4);
  add("round trip 4 B, stream alone", 4);
  add("1 MB", 1 << 20);
  add("100 MB", std::uint32_t{100} << 20);
  return rows.serve();
}
