#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/transport/transport.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace dflow::net {

struct MemoryTransportOptions {
  /// Bytes on the way that nobody reads yet, each way of a connection; at least 1. Further bytes wait with the
  /// writer.
  std::size_t buffer_bytes = std::size_t{64} << 10;
  /// Connections at one address that nobody has accepted yet; more are refused.
  std::size_t max_waiting = 128;
};

/// Connections between tasks of one process, which share the transport. An address is any text but the empty one. If
/// a read waits, bytes go from the writer's memory to the reader's; other bytes stay in a buffer of bounded size.
/// Connecting takes no time, so no deadline is missed.
///
/// Thread safety: safe. Streams and listeners may outlive it.
class MemoryTransport final : public Transport {
 public:
  /// `pool` runs the completions, and must not run them in place as an InlinePool does. Errors: InvalidArgument for no
  /// pool and for no buffer.
  explicit MemoryTransport(std::shared_ptr<ThreadPool> pool, const MemoryTransportOptions& options = {});
  ~MemoryTransport() override;

  std::unique_ptr<Listener> listen(const std::string& address) override;
  void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
               Completion done) override;

  struct Network;

 private:
  std::shared_ptr<Network> network_;
};

}  // namespace dflow::net
