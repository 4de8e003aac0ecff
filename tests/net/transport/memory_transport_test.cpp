#include <dflow/net/transport/memory_transport.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "transport_contract.hpp"

#include <dflow/base/threads/elastic_pool.hpp>

#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <string>

using namespace dflow;
using namespace dflow::net;

TEST_CASE("connections in memory keep the promises of a transport, on one thread and on four", "[net]") {
  const int threads = GENERATE(1, 4);
  const std::size_t buffer = GENERATE(128, 65536);
  MemoryTransport transport(std::make_shared<WorkStealingPool>(threads), {.buffer_bytes = buffer});
  test::keeps_its_promises(transport, "worker 0");
}

TEST_CASE("a stream may be destroyed by the completion that its closing calls for", "[net]") {
  const auto pool = std::make_shared<WorkStealingPool>(2);
  MemoryTransport transport(pool);
  const auto listener = transport.listen("here");
  for (int round = 0; round < 200; ++round) {
    test::Ends ends = test::connected(transport, *listener);
    std::byte byte[1];
    std::size_t count = 0;
    std::promise<void> gone;
    ends.near->read_some(byte, count, [&](Status) {
      ends.near.reset();
      gone.set_value();
    });
    ends.near->close();
    gone.get_future().wait();
  }
}

TEST_CASE("a busy stream lets others of its pool go first now and then", "[net]") {
  // A pool that runs tasks in their order: in other pools a worker first runs a task that it has scheduled itself.
  MemoryTransport transport(std::make_shared<ElasticPool>(ElasticPoolOptions{.max_threads = 1}));
  const auto listener = transport.listen("here");
  test::Ends busy = test::connected(transport, *listener), other = test::connected(transport, *listener);
  const std::string large(1'000'000, 'x');
  test::Ended written;
  busy.near->write({test::bytes_of(large)}, written.completion());
  struct Reader {
    Stream& stream;
    std::byte byte[1] = {};
    std::size_t count = 0;
    std::atomic<int> left{1'000'000};
    std::promise<void> done;

    explicit Reader(Stream& from) : stream(from) {}
    void go() {
      stream.read_some(byte, count, [this](Status) {
        if (--left > 0) return go();
        done.set_value();
      });
    }
  } reader{*busy.far};
  reader.go();
  CHECK(test::write(*other.near, {"ping"}).ok());
  CHECK(test::read(*other.far, 4) == "ping");
  CHECK(reader.left > 0);
  reader.done.get_future().wait();
  CHECK(written.wait().ok());
}

TEST_CASE("as many connections wait as the options say, and the next is told why it does not", "[net]") {
  MemoryTransport transport(std::make_shared<WorkStealingPool>(1), {.max_waiting = 3});
  const auto listener = transport.listen("here");
  std::unique_ptr<Stream> streams[4];
  for (int i = 0; i < 3; ++i) CHECK(test::connect(transport, "here", streams[i]).ok());
  const Status fourth = test::connect(transport, "here", streams[3]);
  CHECK(fourth.code() == Code::unavailable);
  CHECK(contains(fourth.message(), "cannot connect to 'here': too many connections wait"));
}

TEST_CASE("a transport in memory needs a pool, a buffer and addresses", "[net]") {
  CHECK(code_of([] { return MemoryTransport(nullptr); }) == Code::invalid_argument);
  CHECK(code_of([] { return MemoryTransport(std::make_shared<WorkStealingPool>(1), {.buffer_bytes = 0}); }) ==
        Code::invalid_argument);
  MemoryTransport transport(std::make_shared<WorkStealingPool>(1));
  CHECK(code_of([&] { return transport.listen(""); }) == Code::invalid_argument);
  std::unique_ptr<Stream> stream;
  CHECK(test::connect(transport, "", stream).code() == Code::invalid_argument);
}
