#include <dflow/net/simulation/simulated_network.hpp>

#include "../transport/transport_contract.hpp"
#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using namespace std::chrono_literals;

namespace {

/// Runs the events of a simulation for the test's other threads.
class Driver {
 public:
  explicit Driver(Simulation& simulation)
      : thread_([this, &simulation] {
          while (!is_over_) {
            if (!simulation.run_one()) std::this_thread::yield();
          }
        }) {}
  ~Driver() {
    is_over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// Two machines, and a connection between them.
struct SimulatedPair {
  explicit SimulatedPair(std::uint64_t seed = 1, const SimulatedNetworkOptions& options = {})
      : simulation(seed), network(simulation, options) {
    near_process = simulation.start("near");
    far_process = simulation.start("far");
    far_transport = network.transport(far_process);
    listener = far_transport->listen("far:1");
    near_transport = network.transport(near_process);
  }

  Status connect(std::unique_ptr<Stream>& stream, Clock::time_point deadline = Clock::never) {
    return ended([&](Completion done) { near_transport->connect("far:1", deadline, stream, std::move(done)); });
  }
  void connect() {
    listener->accept(far, [](Status) {});
    REQUIRE(connect(near).ok());
    REQUIRE(far != nullptr);
  }
  template <class Begin>
  Status ended(const Begin& begin, Duration within = 1h) {
    Status outcome = Status::internal("nothing has ended it");
    bool has_ended = false;
    begin([&](Status status) {
      outcome = std::move(status);
      has_ended = true;
    });
    simulation.run_until([&] { return has_ended; }, simulation.after(within));
    return outcome;
  }
  Status write(Stream& stream, std::string_view text) {
    return ended([&](Completion done) { stream.write({test::bytes_of(text)}, std::move(done)); });
  }
  struct Read {
    std::string text;
    Status status;
  };
  Read read(Stream& stream) {
    std::string text(1000, '\0');
    std::size_t count = 0;
    Status status = ended(
        [&](Completion done) { stream.read_some(std::as_writable_bytes(std::span(text)), count, std::move(done)); });
    text.resize(count);
    return {std::move(text), std::move(status)};
  }

  Simulation simulation;
  SimulatedNetwork network;
  std::shared_ptr<SimulatedProcess> near_process, far_process;
  std::shared_ptr<Transport> near_transport, far_transport;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> near, far;
};

/// Three machines connected to one. Their interfaces carry one byte in a microsecond, and each way takes 10 ms.
struct SharedInterfaces {
  static SimulatedNetworkOptions options() {
    return {.link = {.min_delay = 10ms, .max_delay = 10ms, .bytes_per_second = 1e18},
            .interface_bytes_per_second = 1e6,
            .window_bytes = 1000};
  }

  SharedInterfaces() : simulation(1), network(simulation, options()) {
    processes.push_back(simulation.start("hub"));
    const auto hub = network.transport(processes.back());
    const auto listener = hub->listen("hub");
    for (int i = 0; i < 3; ++i) {
      processes.push_back(simulation.start("spoke" + std::to_string(i)));
      listener->accept(at_hub[i], [](Status) {});
      network.transport(processes.back())->connect("hub", Clock::never, at_spoke[i], [](Status) {});
      REQUIRE(simulation.run_until([&] { return at_hub[i] != nullptr && at_spoke[i] != nullptr; }, Clock::never));
    }
    began = simulation.now();
  }

  /// Between the hub and a spoke, toward the end that `to` names.
  void send(int spoke, std::string_view to, std::size_t bytes) {
    const bool is_to_hub = to == "hub";
    left[spoke] = bytes;
    (is_to_hub ? at_spoke : at_hub)[spoke]->write({std::span<const std::byte>(sent).first(bytes)}, [](Status) {});
    read(*(is_to_hub ? at_hub : at_spoke)[spoke], spoke);
  }
  void read(Stream& stream, int spoke) {
    stream.read_some(received[spoke], counts[spoke], [this, &stream, spoke](Status) {
      left[spoke] -= counts[spoke];
      if (left[spoke] > 0) return read(stream, spoke);
      times.push_back(simulation.now() - began);
    });
  }
  /// The times at which `number` messages had arrived, since the last call of this function.
  std::vector<Duration> arrivals(std::size_t number) {
    simulation.run_until([&] { return times.size() == number; }, simulation.after(1h));
    began = simulation.now();
    return std::exchange(times, {});
  }

  Simulation simulation;
  SimulatedNetwork network;
  std::vector<std::shared_ptr<SimulatedProcess>> processes;
  std::unique_ptr<Stream> at_hub[3], at_spoke[3];
  std::byte sent[4000] = {}, received[3][4000];
  std::size_t counts[3] = {}, left[3] = {};
  Clock::time_point began;
  std::vector<Duration> times;
};

}  // namespace

TEST_CASE("simulated connections keep the promises of a transport", "[net]") {
  const std::uint64_t seed = GENERATE(1, 2);
  SimulatedNetworkOptions options;
  options.window_bytes = seed == 1 ? 65536 : 5000;
  options.link.late_share = seed == 1 ? 0 : 0.1;
  Simulation simulation(seed);
  SimulatedNetwork network(simulation, options);
  const auto transport = network.transport(simulation.start("worker0"));
  const Driver driver(simulation);
  test::keeps_its_promises(*transport, "worker 0");
}

TEST_CASE("messages of a connection arrive in order whatever their delays, those of two in any", "[net]") {
  SimulatedNetworkOptions options;
  options.link = {.min_delay = 0ns, .max_delay = 1s, .late_share = 0.2, .max_late = 10s};
  SimulatedPair pair(3, options);
  pair.connect();
  std::unique_ptr<Stream> other_near, other_far;
  pair.listener->accept(other_far, [](Status) {});
  REQUIRE(pair.connect(other_near).ok());
  std::string sent;
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i) + ",";
    REQUIRE(pair.write(*pair.near, text).ok());
    sent += text;
  }
  std::string received;
  while (received.size() < sent.size()) received += pair.read(*pair.far).text;
  CHECK(received == sent);
  int overtaken = 0;
  for (int i = 0; i < 100; ++i) {
    std::byte first[1], second[1];
    std::size_t count = 0;
    int ended = 0, order = 0;
    const auto note = [&](int which) {
      return [&, which](Status) {
        order = order * 10 + which;
        ++ended;
      };
    };
    pair.far->read_some(first, count, note(1));
    other_far->read_some(second, count, note(2));
    pair.near->write({test::bytes_of("a")}, [](Status) {});
    other_near->write({test::bytes_of("b")}, [](Status) {});
    REQUIRE(pair.simulation.run_until([&] { return ended == 2; }, Clock::never));
    overtaken += order == 21 ? 1 : 0;
  }
  CHECK(overtaken > 10);
  CHECK(overtaken < 90);
}

TEST_CASE("a machine that is cut off hears nothing until it is not, and then all", "[net]") {
  SimulatedPair pair;
  pair.connect();
  pair.network.block("near", "far");
  CHECK(pair.write(*pair.near, "one").ok());
  CHECK(pair.write(*pair.far, "back").ok());
  CHECK(pair.read(*pair.near).text == "back");
  std::string text(3, '\0');
  std::size_t count = 0;
  bool has_read = false;
  pair.far->read_some(std::as_writable_bytes(std::span(text)), count, [&](Status) { has_read = true; });
  pair.simulation.run_for(1h);
  CHECK_FALSE(has_read);
  std::unique_ptr<Stream> stream;
  CHECK(pair.connect(stream, pair.simulation.after(2s)).code() == Code::deadline_exceeded);
  CHECK(stream == nullptr);
  pair.network.unblock("near", "far");
  CHECK(pair.simulation.run_until([&] { return has_read; }, pair.simulation.after(1s)));
  CHECK(text == "one");
  CHECK(pair.connect(stream, pair.simulation.after(2s)).ok());
}

TEST_CASE("an attempt that is blocked at first connects when it is not any more", "[net]") {
  SimulatedPair pair;
  pair.network.block("far", "near");
  pair.simulation.schedule_after(5s, [&] { pair.network.heal(); });
  std::unique_ptr<Stream> stream;
  CHECK(pair.connect(stream, pair.simulation.after(10s)).ok());
  CHECK(stream != nullptr);
}

TEST_CASE("a reset ends both sides, and what was under way is lost", "[net]") {
  SimulatedPair pair;
  for (int round = 0; round < 3; ++round) {
    pair.connect();
    CHECK(pair.write(*pair.near, "lost").ok());
    pair.network.reset(round % 2 == 0 ? "near" : "far", round % 2 == 0 ? "far" : "near");
    CHECK(pair.read(*pair.far).status.code() == Code::unavailable);
    CHECK(pair.read(*pair.near).status.code() == Code::unavailable);
    CHECK(pair.write(*pair.far, "x").code() == Code::unavailable);
    CHECK(pair.network.num_connections() == 0);
  }
}

TEST_CASE("a connection that one side has forgotten ends on the other when that one writes", "[net]") {
  SimulatedPair pair;
  pair.connect();
  CHECK(pair.write(*pair.near, "before").ok());
  pair.network.forget("near", "far");
  CHECK(pair.read(*pair.near).status.code() == Code::unavailable);
  CHECK(pair.read(*pair.far).text == "before");
  std::byte byte[1];
  std::size_t count = 0;
  Status status;
  bool has_ended = false;
  pair.far->read_some(byte, count, [&](Status told) {
    status = std::move(told);
    has_ended = true;
  });
  pair.simulation.run_for(1h);
  CHECK_FALSE(has_ended);
  CHECK(pair.write(*pair.far, "x").ok());
  CHECK(pair.simulation.run_until([&] { return has_ended; }, pair.simulation.after(1s)));
  CHECK(status.code() == Code::unavailable);
  CHECK(pair.write(*pair.far, "y").code() == Code::unavailable);
}

TEST_CASE("who does not read lets the writer wait when the window is full", "[net]") {
  SimulatedPair pair(1, {.window_bytes = 1000});
  pair.connect();
  pair.network.stall("far", "near", 20s);
  std::byte byte[1000];
  std::size_t count = 0;
  bool has_read = false, has_written = false;
  pair.far->read_some(byte, count, [&](Status) { has_read = true; });
  const std::string text(1500, 'x');
  pair.near->write({test::bytes_of(text)}, [&](Status) { has_written = true; });
  pair.simulation.run_for(19s);
  CHECK_FALSE(has_read);
  CHECK_FALSE(has_written);
  pair.simulation.run_for(2s);
  CHECK(has_read);
  CHECK(has_written);
  CHECK(count == 1000);
  CHECK(pair.read(*pair.far).text == std::string(500, 'x'));
  pair.network.stall("far", "near", 1h);
  CHECK(pair.write(*pair.near, "soon").ok());
  pair.simulation.schedule_after(5s, [&] { pair.network.heal(); });
  CHECK(pair.read(*pair.far).text == "soon");
  CHECK(pair.simulation.now().time_since_epoch() < 1min);
}

TEST_CASE("a write of several parts fills the window and no more", "[net]") {
  SimulatedPair pair(1, {.window_bytes = 1000});
  pair.connect();
  const std::string first(300, 'x'), second(900, 'y'), third(500, 'z');
  bool has_written = false;
  pair.near->write({test::bytes_of(first), test::bytes_of(second), test::bytes_of(third)},
                   [&](Status) { has_written = true; });
  pair.simulation.run_for(1h);
  CHECK_FALSE(has_written);
  std::byte bytes[2000];
  std::size_t count = 0;
  pair.far->read_some(bytes, count, [](Status) {});
  pair.simulation.run_for(1h);
  CHECK(count == 1000);
  CHECK(has_written);
  CHECK(pair.read(*pair.far).text == std::string(200, 'y') + third);
}

TEST_CASE("a process that crashes resets its connections, and may listen again when it is back", "[net]") {
  SimulatedPair pair;
  pair.connect();
  CHECK(pair.write(*pair.far, "last words").ok());
  pair.far_process->crash();
  CHECK(pair.read(*pair.near).text == "last words");
  CHECK(pair.read(*pair.near).status.code() == Code::unavailable);
  std::unique_ptr<Stream> stream;
  CHECK(pair.connect(stream).code() == Code::unavailable);
  pair.far.reset();
  pair.listener.reset();
  pair.far_process = pair.simulation.start("far");
  pair.far_transport = pair.network.transport(pair.far_process);
  pair.listener = pair.far_transport->listen("far:1");
  pair.connect();
  CHECK(pair.write(*pair.near, "again").ok());
  CHECK(pair.read(*pair.far).text == "again");
}

TEST_CASE("a machine without power says nothing until it is back, and then that it knows of no connection", "[net]") {
  SimulatedPair pair;
  pair.connect();
  pair.network.power_off(*pair.far_process);
  CHECK_FALSE(pair.far_process->is_alive());
  CHECK(pair.write(*pair.near, "anybody there").ok());
  Status status;
  bool has_ended = false;
  std::byte byte[1];
  std::size_t count = 0;
  pair.near->read_some(byte, count, [&](Status told) {
    status = std::move(told);
    has_ended = true;
  });
  pair.simulation.run_for(1h);
  CHECK_FALSE(has_ended);
  std::unique_ptr<Stream> stream;
  CHECK(pair.connect(stream, pair.simulation.after(2s)).code() == Code::deadline_exceeded);
  const auto back = pair.simulation.start("far");
  const auto transport = pair.network.transport(back);
  CHECK(pair.simulation.run_until([&] { return has_ended; }, pair.simulation.after(1s)));
  CHECK(status.code() == Code::unavailable);
  CHECK(pair.connect(stream).code() == Code::unavailable);
  pair.listener = transport->listen("far:1");
  CHECK(pair.connect(stream).ok());
}

TEST_CASE("as many simulated connections wait as the options say, and the next is told why it does not", "[net]") {
  SimulatedPair pair(1, {.max_waiting = 3});
  std::unique_ptr<Stream> streams[4];
  for (int i = 0; i < 3; ++i) CHECK(pair.connect(streams[i]).ok());
  const Status fourth = pair.connect(streams[3]);
  CHECK(fourth.code() == Code::unavailable);
  CHECK(contains(fourth.message(), "cannot connect to 'far:1': too many connections wait"));
}

TEST_CASE("a simulated network needs a window and addresses", "[net]") {
  Simulation simulation(1);
  CHECK(code_of([&] { return SimulatedNetwork(simulation, {.window_bytes = 0}).num_connections(); }) ==
        Code::invalid_argument);
  SimulatedPair pair;
  CHECK(code_of([&] { return pair.near_transport->listen(""); }) == Code::invalid_argument);
  std::unique_ptr<Stream> stream;
  CHECK(pair.ended([&](Completion done) { pair.near_transport->connect("", Clock::never, stream, std::move(done)); })
            .code() == Code::invalid_argument);
}

TEST_CASE("connections share what the network interfaces at their ends carry, each way apart", "[net]") {
  SharedInterfaces net;
  SECTION("three senders, one receiver") {
    for (int i = 0; i < 3; ++i) net.send(i, "hub", 1000);
    CHECK(net.arrivals(3) == std::vector<Duration>{11ms, 12ms, 13ms});
  }
  SECTION("three senders of more than a window take turns, and no time is lost") {
    net.network.set_link({.min_delay = 0ms, .max_delay = 0ms, .bytes_per_second = 1e18});
    for (int i = 0; i < 3; ++i) net.send(i, "hub", 4000);
    CHECK(net.arrivals(3) == std::vector<Duration>{10ms, 11ms, 12ms});
  }
  SECTION("one sender, three receivers") {
    for (int i = 0; i < 3; ++i) net.send(i, "spoke", 1000);
    CHECK(net.arrivals(3) == std::vector<Duration>{11ms, 12ms, 13ms});
  }
  SECTION("both ways at once") {
    net.send(0, "hub", 1000);
    net.send(1, "spoke", 1000);
    CHECK(net.arrivals(2) == std::vector<Duration>{11ms, 11ms});
  }
  SECTION("one after the other waits for nobody") {
    net.send(0, "hub", 1000);
    CHECK(net.arrivals(1) == std::vector<Duration>{11ms});
    net.send(1, "hub", 1000);
    CHECK(net.arrivals(1) == std::vector<Duration>{11ms});
  }
}

TEST_CASE("what a machine sends itself passes no network interface", "[net]") {
  Simulation simulation(1);
  SimulatedNetwork network(simulation, SharedInterfaces::options());
  const auto transport = network.transport(simulation.start("alone"));
  const auto listener = transport->listen("alone");
  std::unique_ptr<Stream> near, far;
  listener->accept(far, [](Status) {});
  transport->connect("alone", Clock::never, near, [](Status) {});
  REQUIRE(simulation.run_until([&] { return near != nullptr && far != nullptr; }, simulation.after(1s)));
  const Clock::time_point begin = simulation.now();
  std::byte bytes[1000] = {};
  std::size_t count = 0;
  near->write({std::span<const std::byte>(bytes)}, [](Status) {});
  far->read_some(bytes, count, [](Status) {});
  REQUIRE(simulation.run_until([&] { return count > 0; }, simulation.after(1s)));
  CHECK(simulation.now() - begin == 10ms);
}

TEST_CASE("what is sent over a simulated network follows from the seed", "[net]") {
  const auto hash_of = [](std::uint64_t seed, std::string_view text) {
    SimulatedPair pair(seed);
    pair.connect();
    for (int i = 0; i < 10; ++i) REQUIRE(pair.write(*pair.near, text).ok());
    pair.simulation.run_for(1s);
    return pair.simulation.trace_hash();
  };
  const std::uint64_t first = hash_of(5, "text");
  for (int i = 0; i < 3; ++i) CHECK(hash_of(5, "text") == first);
  CHECK(hash_of(6, "text") != first);
  CHECK(hash_of(5, "test") != first);
}
