#include <dflow/net/server.hpp>

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/protocol/frame.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "catch.hpp"
#include "transport/transport_contract.hpp"

#include <atomic>
#include <memory>
#include <string_view>

using namespace dflow;
using namespace dflow::net;

TEST_CASE("a server that is stopped by what its stop calls does not wait for itself", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  std::atomic<Server*> stopped{nullptr};
  std::atomic<int> num_lines{0};
  ServerOptions options;
  options.transport = transport;
  options.num_threads = 1;
  options.log = [&](std::string_view) {
    ++num_lines;
    num_lines.notify_all();
    Server* const server = stopped.load();
    if (server == nullptr) return;
    server->stop();
    server->join();
  };
  ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.set_task("ps", 0);
  Server server(spec, options);
  stopped = &server;
  // When the server stops, it logs a line for each connection that has sent nothing yet.
  std::unique_ptr<Stream> stream;
  REQUIRE(test::connect(*transport, "ps0", stream).ok());
  CHECK(test::read(*stream, FrameHeader::size).size() == FrameHeader::size);
  server.stop();
  server.stop();
  CHECK(server.join() == 0);
  num_lines.wait(0);  // a thread of the transport may be about to log it
  CHECK(num_lines == 1);
  stopped = nullptr;
}
