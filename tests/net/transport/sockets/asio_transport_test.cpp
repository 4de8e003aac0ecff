#include <dflow/net/transport/sockets/asio_transport.hpp>

#include "../../../../tools/free_addresses.hpp"
#include "../transport_contract.hpp"
#include "catch.hpp"
#include "support/errors.hpp"
#include "support/other_user.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dflow;
using namespace dflow::net;

namespace {

/// A TCP port with a listener that has no room and accepts no connection, and the connections that fill it.
struct BlackHole {
  std::vector<int> sockets;
  std::string address;

  BlackHole() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockets.push_back(listener);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(listener, 0) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address = "tcp://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    for (int i = 0; i < 4; ++i) {
      const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      sockets.push_back(client);
      ::connect(client, reinterpret_cast<sockaddr*>(&at), size);
    }
  }
  ~BlackHole() {
    for (const int socket : sockets) ::close(socket);
  }
};

std::string free_port() { return "tcp://" + dflow::launch::free_addresses(1)[0]; }

#if defined(__linux__)
/// The name of the Unix socket for connections on the same machine to a listener at this address of 127.0.0.1.
std::pair<sockaddr_un, socklen_t> local_name(const std::string& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "dflow 127.0.0.1 " + address.substr(address.rfind(':') + 1);
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  return {name, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())};
}
#endif

}  // namespace

TEST_CASE("TCP keeps the promises of a transport, on one thread and on three", "[net]") {
  AsioTransport transport({.threads = GENERATE(1, 3), .uses_local_sockets = GENERATE(false, true)});
  test::keeps_its_promises(transport, free_port());
}

TEST_CASE("threads that let others run before they wait keep the promises of a transport", "[net]") {
  AsioTransport transport({.threads = GENERATE(1, 3), .lets_others_run = true});
  test::keeps_its_promises(transport, free_port());
}

#if defined(__linux__)

TEST_CASE("a TCP listener is reached by its Unix socket on its machine, where both sides want that", "[net]") {
  const std::string host = GENERATE("127.0.0.1", "0.0.0.0", "localhost");
  AsioTransport tcp({.uses_local_sockets = false}), local;
  const auto listener = local.listen(host + ":0");
  const auto other = tcp.listen("127.0.0.1:0");
  const std::string address = listener->address();
  const std::string reached = (host == "localhost" ? host : "127.0.0.1") + address.substr(address.rfind(':'));
  const auto client_of = [&](AsioTransport& transport, Listener& at, const std::string& to) {
    return test::connected(transport, at, to).far->peer();
  };
  for (int i = 0; i < 3; ++i) {
    CHECK(client_of(local, *listener, reached) == "a client of " + address);
    CHECK(client_of(tcp, *listener, reached).starts_with("tcp://"));
    CHECK(client_of(local, *other, other->address()).starts_with("tcp://"));
  }
}

TEST_CASE("an address whose Unix socket the same user listens at elsewhere is taken", "[net]") {
  AsioTransport transport;
  const std::string address = free_port();
  const auto [name, size] = local_name(address);
  const int squatter = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(squatter, reinterpret_cast<const sockaddr*>(&name), size) == 0);
  // No listener is there yet: a connect goes on to the TCP address.
  CHECK(test::connected(transport, *transport.listen(address), address).far->peer().starts_with("tcp://"));
  REQUIRE(::listen(squatter, 8) == 0);
  const Status taken = status_of([&] { static_cast<void>(transport.listen(address)); });
  CHECK(taken.code() == Code::already_exists);
  CHECK(mentions(taken, address));
  ::close(squatter);
  CHECK(test::connected(transport, *transport.listen(address), address).far->peer() == "a client of " + address);
}

TEST_CASE("a listener's name that another user has taken is not believed", "[net]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can become another user");
    return;
  }
  AsioTransport transport;
  const std::string address = free_port();
  const auto local = local_name(address);
  sockaddr_un name = local.first;
  const socklen_t size = local.second;
  int told[2];
  REQUIRE(::pipe(told) == 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool has_name =
        ::seteuid(65534) == 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&name), size) == 0 && ::listen(fd, 8) == 0;
    if (::write(told[1], has_name ? "y" : "n", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char has_name = 'n';
  CHECK(::read(told[0], &has_name, 1) == 1);
  CHECK(has_name == 'y');
  const auto listener = transport.listen(address);
  CHECK(test::connected(transport, *listener, address).far->peer().starts_with("tcp://"));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  for (const int fd : told) ::close(fd);
}

#endif

TEST_CASE("Unix sockets keep the promises of a transport, with a file and without", "[net]") {
  const testing::TemporaryFolder folder;
  const bool has_file = GENERATE(true, false);
  const std::string name = folder.file("socket");
  AsioTransport transport({.threads = GENERATE(1, 3)});
  test::keeps_its_promises(transport, has_file ? "unix://" + name : "unix://@" + name);
}

TEST_CASE("small buffers of the system change nothing", "[net]") {
  AsioTransport transport({.no_delay = false, .send_buffer_bytes = 4096, .receive_buffer_bytes = 4096});
  const auto listener = transport.listen("127.0.0.1:0");
  const test::Ends ends = test::connected(transport, *listener);
  const std::string sent(3'000'000, 'x');
  test::Ended written;
  ends.near->write({test::bytes_of(sent)}, written.completion());
  CHECK(test::read(*ends.far, sent.size()) == sent);
  CHECK(written.wait().ok());
}

TEST_CASE("listening at port 0 finds a free one, which the address tells", "[net]") {
  AsioTransport transport;
  std::vector<std::string> addresses;
  for (const std::string host : {"127.0.0.1", "[::1]", "localhost"}) {
    const auto listener = transport.listen(host + ":0");
    CHECK(contains(listener->address(), "tcp://" + host + ":"));
    CHECK_FALSE(listener->address().ends_with(":0"));
    const test::Ends ends = test::connected(transport, *listener);
    CHECK(contains(ends.far->peer(), host == "[::1]" ? "tcp://[::1]:" : "tcp://"));
    CHECK(test::write(*ends.near, {"ping"}).ok());
    CHECK(test::read(*ends.far, 4) == "ping");
  }
}

TEST_CASE("what is no address is InvalidArgument that quotes it", "[net]") {
  AsioTransport transport;
  for (const std::string bad : {"", ":", "host", "host:", ":1", "tcp://", "tcp://host", "tcp://host:65536",
                                "tcp://host:-1", "tcp://host:1x", "tcp://::1:80", "tcp://[::1]", "tcp://[host]:1",
                                "tcp://a/b:1", "tcp://a b:1", "http://host:1", "unix://", "unix://@", "tls://host"}) {
    CAPTURE(bad);
    CHECK(contains(error_of([&] { return transport.listen(bad); }), "'" + bad + "'"));
    std::unique_ptr<Stream> stream;
    const Status status = test::connect(transport, bad, stream);
    CHECK(status.code() == Code::invalid_argument);
    CHECK(contains(status.message(), "'" + bad + "'"));
  }
  const std::string long_path = "unix://" + std::string(200, 'x'), long_host = std::string(300, 'x') + ":1";
  CHECK(contains(error_of([&] { return transport.listen(long_path); }), "too long"));
  CHECK(contains(error_of([&] { return transport.listen(long_host); }), "no name"));
  CHECK(contains(error_of([&] { return transport.listen(std::string("tcp://a\0b:1", 11)); }), "zero byte"));
}

TEST_CASE("options that make no sense are InvalidArgument", "[net]") {
  CHECK(code_of([] { return AsioTransport({.threads = 0}); }) == Code::invalid_argument);
  CHECK(code_of([] { return AsioTransport({.max_waiting = 0}); }) == Code::invalid_argument);
  CHECK(code_of([] { return AsioTransport({.send_buffer_bytes = -1}); }) == Code::invalid_argument);
}

TEST_CASE("a refused connection and an unknown host are Unavailable, naming the address", "[net]") {
  AsioTransport transport;
  std::unique_ptr<Stream> stream;
  const std::string address = free_port();
  const Status refused = test::connect(transport, address, stream);
  CHECK(refused.code() == Code::unavailable);
  CHECK(contains(refused.message(), "cannot connect to '" + address + "'"));
  CHECK(test::connect(transport, "nowhere.invalid:1", stream).code() == Code::unavailable);
  CHECK(code_of([&] { return transport.listen("nowhere.invalid:1"); }) == Code::unavailable);
  CHECK(code_of([&] { return transport.listen("unix:///nowhere/at/all"); }) == Code::unavailable);
}

TEST_CASE("a deadline ends a connect that nobody answers, by the clock that was given", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  AsioTransport transport({.clock = clock});
  const BlackHole hole;
  for (int i = 0; i < 3; ++i) {
    std::unique_ptr<Stream> stream;
    test::Ended ended;
    transport.connect(hole.address, clock->after(std::chrono::seconds(5)), stream, ended.completion());
    while (clock->next_deadline() == Clock::never) std::this_thread::yield();
    clock->advance(std::chrono::seconds(5));
    const Status late = ended.wait();
    CHECK(late.code() == Code::deadline_exceeded);
    CHECK(contains(late.message(), hole.address));
    CHECK(stream == nullptr);
  }
  std::unique_ptr<Stream> stream;
  test::Ended ended;
  transport.connect(hole.address, clock->now(), stream, ended.completion());
  CHECK(ended.wait().code() == Code::deadline_exceeded);
}

TEST_CASE("a Unix socket with no room for more is Unavailable", "[net]") {
  const testing::TemporaryFolder folder;
  AsioTransport transport({.max_waiting = 1});
  const auto listener = transport.listen("unix://" + folder.file("full"));
  std::vector<std::unique_ptr<Stream>> streams;
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    status = test::connect(transport, listener->address(), streams.emplace_back());
  }
  CHECK(status.code() == Code::unavailable);
  CHECK(contains(status.message(), "too many connections wait"));
}

TEST_CASE("a socket's file goes with its listener, and one without an owner is replaced", "[net]") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("socket"), address = "unix://" + path;
  AsioTransport transport;
  transport.listen(address);
  CHECK_FALSE(std::filesystem::exists(path));

  const int orphan = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof(at.sun_path) - 1);
  REQUIRE(::bind(orphan, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
  ::close(orphan);
  REQUIRE(std::filesystem::exists(path));
  auto listener = transport.listen(address);
  CHECK(test::connected(transport, *listener).near != nullptr);
  // Asking disturbs no connection: the next connection is the first that is accepted.
  CHECK(code_of([&] { return transport.listen(address); }) == Code::already_exists);
  const test::Ends ends = test::connected(transport, *listener);
  CHECK(test::write(*ends.near, {"ping"}).ok());
  CHECK(test::read(*ends.far, 4) == "ping");

  // The file at this path now belongs to another listener.
  std::filesystem::remove(path);
  const auto other = transport.listen(address);
  listener.reset();
  CHECK(std::filesystem::exists(path));
  CHECK(test::connected(transport, *other).near != nullptr);

  const std::string file = folder.file("file");
  std::fclose(std::fopen(file.c_str(), "w"));
  CHECK(code_of([&] { return transport.listen("unix://" + file); }) == Code::already_exists);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a write of more parts than one system call takes arrives whole", "[net]") {
  AsioTransport transport;
  const auto listener = transport.listen("tcp://127.0.0.1:0");
  const test::Ends ends = test::connected(transport, *listener);
  std::string sent;
  for (int i = 0; i < 20'000; ++i) sent += std::to_string(i) + ",";
  std::vector<std::span<const std::byte>> parts;
  const std::string_view all = sent;
  for (std::size_t i = 0; i < all.size(); i += 7) {
    parts.push_back(test::bytes_of(all.substr(i, 7)));
    parts.emplace_back();
  }
  test::Ended written;
  ends.near->write(std::move(parts), written.completion());
  CHECK(test::read(*ends.far, sent.size()) == sent);
  CHECK(written.wait().ok());
}

TEST_CASE("closing ends a write that waits, and what the peer sends does not cost it what was written", "[net]") {
  AsioTransport transport({.threads = GENERATE(1, 2)});
  const auto listener = transport.listen("tcp://127.0.0.1:0");
  const test::Ends ends = test::connected(transport, *listener);
  const std::string large(50'000'000, 'x');
  test::Ended written;
  ends.near->write({test::bytes_of(large)}, written.completion());
  ends.near->close();
  CHECK(written.wait().code() == Code::unavailable);
  Status status;
  CHECK(test::read(*ends.far, large.size(), &status).size() < large.size());
  CHECK(status.code() == Code::unavailable);

  const test::Ends both = test::connected(transport, *listener);
  CHECK(test::write(*both.far, {"nobody reads this"}).ok());
  CHECK(test::write(*both.near, {"last words"}).ok());
  both.near->close();
  CHECK(test::read(*both.far, 100) == "last words");
}

TEST_CASE("streams outlive their transport and their listener", "[net]") {
  auto transport = std::make_unique<AsioTransport>(AsioTransportOptions{.threads = 2});
  auto listener = transport->listen("tcp://127.0.0.1:0");
  std::vector<test::Ends> all;
  for (int i = 0; i < 3; ++i) all.push_back(test::connected(*transport, *listener));
  std::unique_ptr<Stream> more;
  CHECK(test::connect(*transport, listener->address(), more).ok());
  transport.reset();
  std::unique_ptr<Stream> accepted;
  test::Ended ended;
  listener->accept(accepted, ended.completion());
  CHECK(ended.wait().ok());
  listener.reset();
  for (const test::Ends& ends : all) {
    CHECK(test::write(*ends.near, {"ping"}).ok());
    CHECK(test::read(*ends.far, 4) == "ping");
  }
}

TEST_CASE("a completion may destroy the last of a transport", "[net]") {
  for (int round = 0; round < 20; ++round) {
    struct All {
      std::unique_ptr<AsioTransport> transport = std::make_unique<AsioTransport>();
      std::unique_ptr<Listener> listener = transport->listen("tcp://127.0.0.1:0");
      test::Ends ends = test::connected(*transport, *listener);
      std::byte byte[1];
      std::size_t count = 0;
    };
    auto all = std::make_unique<All>();
    Stream& far = *all->ends.far;
    std::promise<void> gone;
    auto future = gone.get_future();
    std::promise<void> ready;
    all->ends.near->read_some(all->byte, all->count, [&](Status) {
      ready.get_future().wait();
      if (round % 2 == 0) all->transport.reset();
      all.reset();
      gone.set_value();
    });
    far.write({test::bytes_of("x")}, [](Status) {});
    ready.set_value();
    future.wait();
  }
}

TEST_CASE("destroying a transport ends its connects under way", "[net]") {
  const BlackHole hole;
  auto transport = std::make_unique<AsioTransport>();
  std::unique_ptr<Stream> streams[3];
  test::Ended ended[3];
  for (int i = 0; i < 3; ++i) transport->connect(hole.address, Clock::never, streams[i], ended[i].completion());
  transport.reset();
  for (test::Ended& one : ended) CHECK(one.wait().code() == Code::cancelled);
}

TEST_CASE("a peer that goes away without a word is Unavailable, with the system's reason alone", "[net]") {
  AsioTransport transport;
  const auto listener = transport.listen("tcp://127.0.0.1:0");
  const std::string address = listener->address();
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
  std::unique_ptr<Stream> stream;
  test::Ended ended;
  listener->accept(stream, ended.completion());
  REQUIRE(ended.wait().ok());
  const linger reset{1, 0};
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  ::close(client);
  Status status;
  CHECK(test::read(*stream, 1, &status).empty());
  CHECK(status.code() == Code::unavailable);
  CHECK(status.message() == "Connection reset by peer");
  CHECK(test::write(*stream, {"x"}).code() == Code::unavailable);
}

TEST_CASE("without file descriptors accepting is ResourceExhausted, and goes on once there are some", "[net]") {
  const auto clock = std::make_shared<RealClock>();
  clock->schedule_after(Duration::zero(), [] {});  // its thread starts while a sanitizer has descriptors to look at it
  AsioTransport transport({.clock = clock});
  const auto listener = transport.listen("tcp://127.0.0.1:0");
  std::unique_ptr<Stream> near, far;
  CHECK(test::connect(transport, listener->address(), near).ok());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  test::Ended ended;
  listener->accept(far, ended.completion());
  const Status status = ended.wait();
  std::unique_ptr<Stream> other;
  const Status no_socket = test::connect(transport, listener->address(), other);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(no_socket.code() == Code::unavailable);
  test::Ended again;
  listener->accept(far, again.completion());
  CHECK(again.wait().ok());
  CHECK(test::write(*near, {"ping"}).ok());
  CHECK(test::read(*far, 4) == "ping");
}

TEST_CASE("tls is Unimplemented where the library has none, and wants options where it has", "[net]") {
  AsioTransport transport;
  std::unique_ptr<Stream> stream;
  const Code code = AsioTransport::has_tls() ? Code::failed_precondition : Code::unimplemented;
  CHECK(code_of([&] { return transport.listen("tls://localhost:0"); }) == code);
  CHECK(test::connect(transport, "tls://localhost:1", stream).code() == code);
  if (!AsioTransport::has_tls()) {
    CHECK(code_of([] { return AsioTransport({.tls = TlsOptions{}}); }) == Code::unimplemented);
  }
}

TEST_CASE("strangers reach all of TCP, and TLS where it asks for no certificates, but no Unix socket", "[net]") {
  const AsioTransport plain;
  CHECK_FALSE(plain.is_exposed("unix://@name"));
  CHECK_FALSE(plain.is_exposed("unix:///path"));
  for (const char* address : {"127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:0", "10.0.0.1:1", "tls://a:1"}) {
    INFO(address);
    CHECK(plain.is_exposed(address));
  }
  CHECK_THROWS_AS(plain.is_exposed("nowhere"), Error);
}

TEST_CASE("an address that nobody can listen at is told before anybody connects", "[net]") {
  AsioTransport transport;
  CHECK_NOTHROW(transport.check_can_connect("unix://@name"));
  CHECK_NOTHROW(transport.check_can_connect("nobody.example:1"));  // a name may come later
  for (const char* address : {"host", "grpc://host:1", "host:99999", "127.0.0.1:0"}) {
    CHECK(contains(error_of([&] { return transport.check_can_connect(address), 0; }), address));
    std::unique_ptr<Stream> stream;
    CHECK(test::connect(transport, address, stream).code() == Code::invalid_argument);
  }
  const Code without_tls = AsioTransport::has_tls() ? Code::failed_precondition : Code::unimplemented;
  CHECK(code_of([&] { return transport.check_can_connect("tls://host:1"), 0; }) == without_tls);
}

#if defined(__linux__)

TEST_CASE("a Unix socket tells on both sides whether the other side is of another user", "[net]") {
  AsioTransport transport;
  const std::string name = testing::socket_name("own"), taken = testing::socket_name("taken");
  const auto listener = transport.listen("unix://@" + name);
  const test::Ends own = test::connected(transport, *listener);
  CHECK_FALSE(own.near->is_of_other_user());
  CHECK_FALSE(own.far->is_of_other_user());
  const auto tcp = transport.listen("127.0.0.1:0");
  const test::Ends others = test::connected(transport, *tcp);
  CHECK_FALSE(others.far->is_of_other_user());
  if (!testing::can_be_other_user()) {
    WARN("skipped: only root can become another user");
    return;
  }
  const int client = testing::connected_by_other_user(name);
  REQUIRE(client >= 0);
  std::unique_ptr<Stream> far;
  test::Ended accepted;
  listener->accept(far, accepted.completion());
  REQUIRE(accepted.wait().ok());
  CHECK(far->is_of_other_user());
  ::close(client);
  const int server = testing::listening_by_other_user(taken);
  REQUIRE(server >= 0);
  std::unique_ptr<Stream> near;
  REQUIRE(test::connect(transport, "unix://@" + taken, near).ok());
  CHECK(near->is_of_other_user());
  ::close(server);
}

#endif
