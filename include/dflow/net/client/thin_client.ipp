#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/cluster_peers.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/log_lines.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace dflow::net::detail {

/// The connections of a process that is no task and has no ops.
struct ThinClient {
  std::string task;
  std::uint64_t incarnation = 0;
  std::shared_ptr<Clock> clock;
  std::shared_ptr<Peers> peers;
  std::shared_ptr<dflow::detail::LogQueue> lines;
  Duration startup_timeout{};

  ThinClient(const ClusterSpec& cluster, ServerOptions o) : startup_timeout(o.startup_timeout) {
    if (o.clock == nullptr) o.clock = std::make_shared<RealClock>();
    if (o.random == nullptr) o.random = system_seed;
    if (o.transport == nullptr) o.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.clock = o.clock});
    clock = o.clock;
    incarnation = o.incarnation != 0 ? o.incarnation : o.random();
    task = name_of_client("client", incarnation);
    lines = log_lines(task, o);
    Peers::Options to =
        peers_of(cluster, {{}, task, incarnation, 0}, std::move(o.transport), clock, std::move(o.random));
    to.connection.log = dflow::detail::QueuedLog{lines};
    to.connection.heartbeat_interval = o.silence_timeout / 5;
    to.connection.heartbeat_timeout = o.silence_timeout;
    peers = std::make_shared<Peers>(std::move(to));
  }

  void end(const Status& why) const {
    peers->close(why);
    lines->close();
  }
};

/// Calls `begin(done)` and waits until `done` is called with a status.
template <class Begin>
void wait_for_status(ThreadPool* pool, const Begin& begin, const std::stop_token& stop = {}) {
  struct Waiting {
    PoolEvent ended;
    std::atomic<bool> has_ended{false};
    Status outcome;
    void end(Status status) {
      if (has_ended.exchange(true)) return;
      outcome = std::move(status);
      ended.set();
    }
  };
  const auto waiting = std::make_shared<Waiting>();
  dflow::detail::may_block("waiting for another task");
  begin([waiting](Status status) { waiting->end(std::move(status)); });
  const std::stop_callback stopped(stop, [waiting] { waiting->end(Status::cancelled("stop was requested")); });
  if (pool != nullptr) {
    pool->wait(waiting->ended);
  } else {
    waiting->ended.wait_blocking();
  }
  throw_if_error(waiting->outcome);
}

}  // namespace dflow::net::detail
