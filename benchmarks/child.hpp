#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace dflow::bench {

/// This program once more, as a process of its own. It reads commands on its standard input and answers by lines on
/// its standard output. The process must end when its input ends.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    arguments.insert(arguments.begin(), "/proc/self/exe");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    if (error != 0) throw std::runtime_error("cannot start a process");
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }
  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, -1)), to_(other.to_), from_(std::exchange(other.from_, nullptr)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (process_ < 0) return;
    ::close(to_);
    std::fclose(from_);
    ::waitpid(process_, nullptr, 0);
  }

  void tell(std::string line) {
    line += '\n';
    if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) throw std::runtime_error("ended");
  }
  /// Waits for the next line of the process.
  std::string hear() {
    char line[4096];
    if (std::fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error("a process has ended early");
    return line;
  }
  pid_t process() const noexcept { return process_; }

 private:
  pid_t process_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

/// Ports of loopback that were free a moment ago.
inline std::vector<int> free_ports(int count) {
  std::vector<int> sockets, ports;
  for (int i = 0; i < count; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no free port");
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int socket : sockets) ::close(socket);
  return ports;
}

}  // namespace dflow::bench
