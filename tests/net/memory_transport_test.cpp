#include <dflow/net/memory_transport.hpp>

#include "catch.hpp"
#include "errors.hpp"
#include "transport_contract.hpp"

#include <memory>

using namespace dflow;
using namespace dflow::net;

TEST_CASE("connections in memory keep the promises of a transport, on one thread and on four", "[net]") {
  const int threads = GENERATE(1, 4);
  const std::size_t buffer = GENERATE(128, 65536);
  MemoryTransport transport(std::make_shared<WorkStealingPool>(threads), {.buffer_bytes = buffer});
  test::keeps_its_promises(transport, "worker 0");
}

TEST_CASE("a transport in memory needs a pool, a buffer and addresses", "[net]") {
  CHECK(code_of([] { return MemoryTransport(nullptr); }) == Code::invalid_argument);
}
