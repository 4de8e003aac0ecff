#pragma once

/// Public: a task of a cluster.

#include <dflow/base/duration.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/runtime/op_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {
class Allocator;
class Clock;
class Device;
class SessionTarget;
class ThreadPool;
}  // namespace dflow

namespace dflow::net {

class Transport;

/// What a task of a cluster is made with. Whatever is left null it makes for itself.
struct ServerOptions {
  /// All tasks of a cluster, and the sessions on it, have the same.
  OpSet ops = standard_ops;
  /// Of the pool that runs kernels; 0 takes all cores that the process may use.
  int num_threads = 0;
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// Those that it makes itself: "/cpu:0" to "/cpu:n-1" of its task.
  int num_cpu_devices = 1;
  /// Devices of the task instead, named as such.
  std::vector<std::shared_ptr<Device>> devices = {};
  std::shared_ptr<Allocator> allocator = nullptr;
  /// The same bits for the same seed, whatever the number of threads.
  bool reproducible = false;
  std::function<std::uint64_t()> draw_seed = nullptr;
  std::shared_ptr<Clock> clock = nullptr;
  /// Null: TCP, Unix sockets and, where it is built with OpenSSL, TLS, as the addresses say.
  std::shared_ptr<Transport> transport = nullptr;
  /// How long a session that is made waits for tasks that have not been started yet.
  Duration startup_timeout = std::chrono::seconds(60);
  /// A task that has not been heard of for so long is lost; it is asked for a sign of life four times in between.
  Duration silence_timeout = std::chrono::seconds(10);
  /// A tensor that is waited for so long, or up to twice as long, is worth a line in the log: who waits for what. Zero:
  /// none is.
  Duration slow_wait = std::chrono::seconds(10);
  /// Where metrics of the task are served to Prometheus, as text over HTTP at "/metrics"; empty: nowhere. A port alone
  /// ("9100") is loopback's; whoever can connect to another address can read them.
  std::string metrics_address = {};
  /// Tells this start of the task from the ones before it, and is higher than theirs; 0: made of the calendar's time in
  /// microseconds and a random number. Others let in no start with a lower one than they have seen, so where a calendar
  /// cannot be trusted that far a number is to be given here: of who starts the tasks, say.
  std::uint64_t incarnation = 0;
  /// Random numbers of 64 bits for nonces and pauses; null: the operating system's.
  std::function<std::uint64_t()> random = nullptr;
  /// Gets a line for each thing that is worth one; null: standard error.
  std::function<void(std::string_view)> log = nullptr;
};

/// One task of a cluster in this process: it lends its devices to the sessions of all tasks, keeps the variables that
/// are placed on them, and lets a session of this process run on the whole cluster.
///
/// ```cpp
/// auto cluster = df::net::ClusterSpec::from_flags(argc, argv);
/// df::net::Server server(cluster);
/// if (cluster.job() == "ps") return server.join();
/// df::Session session(graph, {.target = server.target()});
/// ```
///
/// Anybody who knows the cluster's secret may run any graph here. Without one it listens on loopback addresses alone,
/// or by TLS that verifies peers, unless the spec says `insecure`.
///
/// Thread safety: all functions may be called from any thread.
/// Errors of the constructor: InvalidArgument for a spec without a task of this process, for devices that are not
/// named as its own, and for an address that is exposed (`Transport::is_exposed`) without a secret; those of
/// `Transport::listen`.
class Server {
 public:
  explicit Server(const ClusterSpec& cluster, ServerOptions options = {});
  /// Stops it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// For `SessionOptions::target`, also of several sessions. With `filters` a session knows those other tasks alone
  /// that one of these matches ("/job:ps", "/job:worker/task:0"), and waits for no other. It keeps the server's parts
  /// alive, but runs nothing in other tasks any more once the server has stopped. Errors: InvalidArgument for a filter
  /// that is no device's name or matches no task of the cluster, unless this task is all of it.
  std::shared_ptr<SessionTarget> target(std::vector<std::string> filters = {}) const;

  /// Blocks until `stop` is called. Returns 0, for main.
  int join();
  /// Ends the steps that run here and all connections, with Unavailable for those who wait; a second call waits for the
  /// first. On the thread that is in it already (in `ServerOptions::log`, or in what hears of the end of a step) it
  /// does nothing, and neither does `join`.
  void stop();

  /// "/job:ps/replica:0/task:1".
  const std::string& task() const noexcept;
  /// Where it listens: the spec's address, with the port that it got where that one is 0.
  const std::string& address() const noexcept;
  /// Where metrics are served, with the port that it got; empty if nowhere.
  std::string metrics_address() const;
  std::uint64_t incarnation() const noexcept;
  const std::vector<std::shared_ptr<Device>>& devices() const noexcept;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// A client of a cluster that is no task of it: for `SessionOptions::target` in a process that lends no device.
/// `cluster` need not name a task of this process. Of `options` the ops, pool, clock, transport, timeouts, `slow_wait`,
/// log, random numbers and incarnation count. Errors: as of `Server`.
std::shared_ptr<SessionTarget> connect(const ClusterSpec& cluster, ServerOptions options = {});

}  // namespace dflow::net
