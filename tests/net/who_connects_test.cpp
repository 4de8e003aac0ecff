// Who may connect to a task by default, and what is told of clusters that were written down wrong.
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/cluster_comparison.hpp>
#include <dflow/net/protocol/frame.hpp>
#include <dflow/net/protocol/handshake.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include <dflow/base/system_seed.hpp>
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "loopback_spec.hpp"
#include "protocol/connection_harness.hpp"
#include "support/errors.hpp"
#include "support/other_user.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace df = dflow;
namespace net = dflow::net;

namespace {

/// A cluster of "/job:ps/replica:0/task:0" at this address, without a secret.
net::ClusterSpec open_spec(const std::string& address) {
  net::ClusterSpec spec;
  spec.add_task("ps", 0, address);
  return spec;
}

net::ServerOptions quiet_options() {
  net::ServerOptions options;
  options.num_threads = 1;
  options.startup_timeout = std::chrono::seconds(20);
  options.log = [](std::string_view) {};
  return options;
}

net::ServerOptions logging_options(const std::shared_ptr<df::testing::ServerLog>& log) {
  net::ServerOptions options = quiet_options();
  options.log = [log](std::string_view line) {
    const std::lock_guard lock(log->mutex);
    log->lines.emplace_back(line);
  };
  return options;
}

bool comes_to_say(df::testing::ServerLog& log, std::string_view text) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!log.has(text)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

int num_listening_sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0) ++count;
  }
  return count;
}

float thrice_of_two(const std::shared_ptr<df::SessionTarget>& target) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = x * 3.0f;
  df::Session session(graph, {.target = target});
  return session.run({{x, 2.0f}}, y).scalar();
}

struct ReadFrame {
  net::FrameType type{};
  std::string payload;
};

/// Reads a frame of a peer that sends whole frames.
ReadFrame next_frame(int fd) {
  const auto read_all = [fd](std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t have = 0; have < size;) {
      const ssize_t count = ::recv(fd, bytes.data() + have, size - have, 0);
      REQUIRE(count > 0);
      have += static_cast<std::size_t>(count);
    }
    return bytes;
  };
  const std::string head = read_all(net::FrameHeader::size);
  const net::FrameHeader header =
      net::read_frame_header(net::test::bytes_of(head).first<net::FrameHeader::size>(), 1 << 20);
  return {header.type, read_all(header.length)};
}

std::string hello_frame(net::Role role, const std::string& task) {
  net::Handshake::Options options;
  options.role = role;
  options.self = {{}, task, 1, role == net::Role::acceptor ? net::ServerOptions().ops.ops().fingerprint() : 0};
  options.random = df::system_seed;
  return net::test::frame_bytes(net::FrameType::hello, 0, net::Handshake(options).hello());
}

bool send_all(int fd, std::string_view bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// The answer of a server at the abstract Unix socket to a client of another user.
ReadFrame answer_to_other_user(const std::string& name) {
  const int client = df::testing::connected_by_other_user(name);
  REQUIRE(client >= 0);
  REQUIRE(send_all(client, hello_frame(net::Role::connector, "/job:client/replica:0/task:7")));
  CHECK(next_frame(client).type == net::FrameType::hello);
  ReadFrame answer = next_frame(client);
  ::close(client);
  return answer;
}

bool is_skipped() {
  if (df::testing::can_be_other_user()) return false;
  WARN("skipped: only root can become another user");
  return true;
}

}  // namespace

TEST_CASE("a program that runs alone listens nowhere, and its sessions run", "[net]") {
  const int before = num_listening_sockets();
  const net::Server server(net::ClusterSpec::local(), quiet_options());
  CHECK(num_listening_sockets() == before);
  CHECK(server.address().empty());
  CHECK(server.task() == "/job:localhost/replica:0/task:0");
  CHECK(thrice_of_two(server.target()) == 6);
  float elsewhere = 0;
  std::thread([&] { elsewhere = thrice_of_two(server.target()); }).join();
  CHECK(elsewhere == 6);
}

TEST_CASE("a program that runs alone listens where it is told to", "[net]") {
  net::ClusterSpec spec = net::ClusterSpec::local();
  const std::string address = "unix://@" + df::testing::socket_name("alone");
  spec.set_bind_address(address);
  const net::Server server(spec, quiet_options());
  CHECK(server.address() == address);
  net::ClusterSpec client;
  client.add_task("localhost", 0, address);
  CHECK(thrice_of_two(net::remote_master(client, "/job:localhost/task:0", {}, quiet_options())) == 6);
  spec.set_bind_address("127.0.0.1:0");
  CHECK(contains(error_of([&] {
                   net::Server(spec, quiet_options());
                   return 0;
                 }),
                 "'127.0.0.1:0' of /job:localhost/replica:0/task:0 is open to strangers"));
}

TEST_CASE("processes of one user meet at Unix sockets without a secret", "[net]") {
  net::ClusterSpec spec = open_spec("unix://@" + df::testing::socket_name("same"));
  const net::ClusterSpec client = spec;
  spec.set_task("ps", 0);
  const net::Server server(spec, quiet_options());
  CHECK(thrice_of_two(net::connect(client, quiet_options())) == 6);
  CHECK(thrice_of_two(net::remote_master(client, "/job:ps/task:0", {}, quiet_options())) == 6);
  CHECK(net::inspect(client).at(0).status.ok());
}

TEST_CASE("a task without a secret refuses a process of another user", "[net]") {
  if (is_skipped()) return;
  const std::string name = df::testing::socket_name("refuses");
  net::ClusterSpec spec = open_spec("unix://@" + name);
  spec.set_task("ps", 0);
  const auto log = std::make_shared<df::testing::ServerLog>();
  {
    const net::Server server(spec, logging_options(log));
    const ReadFrame refusal = answer_to_other_user(name);
    CHECK(refusal.type == net::FrameType::goodbye);
    df::ByteReader in(refusal.payload);
    const df::Status why = net::read_status(in);
    CHECK(why.code() == df::Code::unauthenticated);
    CHECK(mentions(why, "'/job:client/replica:0/task:7' runs for another user than '/job:ps/replica:0/task:0'"));
    CHECK(comes_to_say(*log, "runs for another user"));
  }
  SECTION("a secret decides instead where there is one") { spec.set_secret("the fixed secret of tests"); }
  SECTION("an insecure cluster refuses nobody") { spec.set_insecure(true); }
  const net::Server server(spec, logging_options(log));
  CHECK(answer_to_other_user(name).type == net::FrameType::proof);
}

TEST_CASE("a client without a secret refuses a task of another user", "[net]") {
  if (is_skipped()) return;
  const std::string name = df::testing::socket_name("false");
  const int listener = df::testing::listening_by_other_user(name);
  REQUIRE(listener >= 0);
  std::thread false_server([listener] {
    const int fd = ::accept(listener, nullptr, nullptr);
    send_all(fd, hello_frame(net::Role::acceptor, "/job:ps/replica:0/task:0"));
    std::array<char, 256> read;
    while (::recv(fd, read.data(), read.size(), 0) > 0) {
    }
    ::close(fd);
  });
  const df::Status status =
      status_of([&] { return thrice_of_two(net::connect(open_spec("unix://@" + name), quiet_options())); });
  CHECK(status.code() == df::Code::unauthenticated);
  CHECK(mentions(status, "'/job:ps/replica:0/task:0' runs for another user"));
  false_server.join();
  ::close(listener);
}

TEST_CASE("each task's address is looked at when a process starts, and an error names task and address", "[net]") {
  const auto errors_of = [](net::ClusterSpec cluster) {
    std::vector<df::Status> all;
    all.push_back(status_of([&] { return net::connect(cluster, quiet_options()); }));
    all.push_back(status_of([&] { return net::remote_master(cluster, "/job:ps/task:0", {}, quiet_options()); }));
    all.push_back(status_of([&] { return net::inspect(cluster); }));
    all.push_back(status_of([&] { return net::reset(cluster, {}, {}, quiet_options()), 0; }));
    cluster.set_task("ps", 0);
    all.push_back(status_of([&] { return net::Server(cluster, quiet_options()).address(); }));
    return all;
  };
  const std::string own = "unix://@" + df::testing::socket_name("own");
  for (const std::string bad : {"10.0.0.1", "grpc://10.0.0.1:2222", "10.0.0.1:99999", "10.0.0.1:0", "unix://"}) {
    net::ClusterSpec cluster = open_spec(own);
    cluster.add_task("worker", 3, bad);
    cluster.set_secret("the fixed secret of tests");
    for (const df::Status& status : errors_of(cluster)) {
      INFO(status.to_string());
      CHECK(status.code() == df::Code::invalid_argument);
      CHECK(mentions(status, "the address of /job:worker/replica:0/task:3: '" + bad + "' is no address"));
    }
  }
  net::ClusterSpec open = open_spec(own);
  open.add_task("worker", 3, "127.0.0.1:2222");
  for (const df::Status& status : errors_of(open)) {
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, "'127.0.0.1:2222' of /job:worker/replica:0/task:3 is open to strangers"));
  }
  net::ClusterSpec malformed = df::testing::loopback_spec("127.0.0.1");
  malformed.set_task("ps", 0);
  CHECK(contains(error_of([&] { return net::Server(malformed, quiet_options()).address(); }),
                 "the address of /job:ps/replica:0/task:0: '127.0.0.1' is no address"));
}

TEST_CASE("tasks that were started with different clusters say on both sides what differs", "[net]") {
  const auto transport = std::make_shared<net::MemoryTransport>(
      std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "io"}));
  net::ClusterSpec small, large;
  for (net::ClusterSpec* const spec : {&small, &large}) {
    spec->add_task("ps", 0, "ps0");
    spec->add_task("worker", 0, "worker0");
  }
  large.add_task("worker", 1, "worker1");
  small.set_task("ps", 0);
  large.set_task("worker", 0);
  const auto of_ps = std::make_shared<df::testing::ServerLog>(), of_worker = std::make_shared<df::testing::ServerLog>();
  net::ServerOptions options = logging_options(of_ps);
  options.transport = transport;
  const net::Server ps(small, options);
  options = logging_options(of_worker);
  options.transport = transport;
  const net::Server worker(large, options);
  CHECK(thrice_of_two(worker.target({"/job:ps"})) == 6);
  CHECK(
      comes_to_say(*of_ps,
                   "/job:worker/replica:0/task:0 was started with another cluster than this task: 3 tasks there and 2 "
                   "here, /job:worker/replica:0/task:1 (worker1) only there"));
  CHECK(comes_to_say(*of_worker,
                     "/job:ps/replica:0/task:0 was started with another cluster than this task: 2 tasks there and 3 "
                     "here, /job:worker/replica:0/task:1 (worker1) only here"));
}

TEST_CASE("tasks of one cluster, and clients that know a part of it, have nothing to say of that", "[net]") {
  df::testing::MemoryCluster cluster({{"ps", 1}, {"worker", 2}});
  CHECK(thrice_of_two(cluster.server("worker", 1).target()) == 6);
  net::ClusterSpec part = open_spec("ps0");
  CHECK(thrice_of_two(net::connect(part, cluster.options())) == 6);
  CHECK_FALSE(cluster.log().has("another cluster"));
}

TEST_CASE("the difference of two clusters is told in few words", "[net]") {
  using List = net::ClusterTaskList;
  const List own{3, {{"a", "1"}, {"b", "2"}, {"c", "3"}}};
  CHECK(net::detail::difference_of(own, own).empty());
  CHECK(net::detail::difference_of(own, List{3, {{"a", "1"}, {"b", "9"}, {"d", "3"}}}) ==
        "b at 9 there and at 2 here, d (3) only there, c (3) only here");
  List many{6, {{"d", "1"}, {"e", "2"}, {"f", "3"}, {"g", "4"}, {"h", "5"}, {"i", "6"}}};
  CHECK(net::detail::difference_of(own, many) ==
        "6 tasks there and 3 here, d (1) only there, e (2) only there, f (3) only there, and 6 more differences");
  many.num_tasks = 7;  // the rest was cut
  CHECK(net::detail::difference_of(own, many) == "7 tasks there and 3 here");
}

TEST_CASE("the fingerprint of a cluster is of its tasks' names", "[net]") {
  const auto fingerprint_of = [](const char* text) {
    return net::ClusterComparison(net::ClusterSpec::parse(text), [](std::string_view) {}).fingerprint();
  };
  CHECK(fingerprint_of("ps=a:1;worker=b:1") == fingerprint_of("ps=a:1;worker=c:1"));
  CHECK(fingerprint_of("ps=a:1;worker=b:1") != fingerprint_of("ps=a:1;worker=1=b:1"));
  CHECK(fingerprint_of("ps=a:1;worker=b:1") != fingerprint_of("ps=a:1,b:1"));
  CHECK(fingerprint_of("") != 0);
}
