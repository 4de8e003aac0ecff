#pragma once

/// Public: a task of a cluster.

#include <dflow/base/duration.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/runtime/op_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {
class Allocator;
class Clock;
class Device;
class FileSystem;
class SessionTarget;
class ThreadPool;
}  // namespace dflow

namespace dflow::net {

class Transport;

/// Parts and limits of a task of a cluster. The task makes each object that is null for itself.
struct ServerOptions {
  /// All tasks of a cluster, and the sessions on it, have the same ops.
  OpSet ops = standard_ops;
  /// Size of the pool that runs kernels; 0 takes all cores that the process may use.
  int num_threads = 0;
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// CPU devices that the task makes itself: "/cpu:0" to "/cpu:n-1".
  int num_cpu_devices = 1;
  /// Devices to use instead, with names of this task.
  std::vector<std::shared_ptr<Device>> devices = {};
  std::shared_ptr<Allocator> allocator = nullptr;
  /// The same seed gives the same bits with any number of threads.
  bool reproducible = false;
  std::function<std::uint64_t()> draw_seed = nullptr;
  /// The files that ops on this task's devices read and write, for example `FileSystems`; null: the machine's. Give all
  /// tasks of a cluster the same schemes.
  std::shared_ptr<FileSystem> files = nullptr;
  std::shared_ptr<Clock> clock = nullptr;
  /// Null: TCP, Unix sockets and, if built with OpenSSL, TLS, as the addresses say.
  std::shared_ptr<Transport> transport = nullptr;
  /// Most bytes that this task keeps for one client, and for all clients: requests until they are answered, tensors
  /// that are asked for until they are sent, and the graphs of sessions. Beyond it a request gets ResourceExhausted,
  /// and other clients are served. Variables and the memory of steps do not count (`allocator`). 0: no limit.
  std::uint64_t client_memory_limit_bytes = std::uint64_t{8} << 30;
  std::uint64_t task_memory_limit_bytes = std::uint64_t{16} << 30;
  /// How long a new session waits for tasks that have not been started yet.
  Duration startup_timeout = std::chrono::seconds(60);
  /// A task that has been silent for this long is lost; it is asked for a sign of life four times in between.
  Duration silence_timeout = std::chrono::seconds(10);
  /// A wait for a tensor that lasts this long, or up to twice as long, gets a line in the log with the waiting
  /// device, the tensor and its sender. Zero: no lines.
  Duration slow_wait = std::chrono::seconds(10);
  /// The address that serves the task's metrics to Prometheus, as text over HTTP at "/metrics"; empty: none. A port
  /// alone ("9100") means loopback; anybody who can connect to another address can read the metrics.
  std::string metrics_address = {};
  /// Number of this start of the task, higher than the numbers of its earlier starts; 0: 4096 times the calendar time
  /// in microseconds, and a random number. Other tasks refuse a start with a lower number than they have seen. Numbers
  /// of a time that is more than a day ahead of their calendar do not count: of such starts the one that connects later
  /// is the later one. If the calendar is not reliable enough, pass a number here, for example from the program that
  /// starts the tasks: 1, 2, 3.
  std::uint64_t incarnation = 0;
  /// Random numbers of 64 bits for nonces and pauses; null: the operating system's.
  std::function<std::uint64_t()> random = nullptr;
  /// Gets a line for each notable event; null: standard error. It may block: lines wait for it, up to 1 MiB, and a line
  /// says how many were dropped. It is never called twice at once, and not after the server's destructor, which waits
  /// for a call under way.
  std::function<void(std::string_view)> log = nullptr;
  /// Calls `log`; null: a thread of the task's own. `InlinePool`: the thread where the event is, which must not block.
  std::shared_ptr<ThreadPool> callbacks = nullptr;
};

/// When `Server::join` returns, beside the end of the server.
struct JoinOptions {
  /// After SIGTERM the task goes on as long as clients have sessions on it, so that they can save, but no longer than
  /// this.
  Duration grace = std::chrono::seconds(30);
  /// Also returns when clients have had sessions on this task, and none has had one for so long; none: it does not.
  std::optional<Duration> idle = {};
  /// Ends the task as SIGTERM does.
  std::stop_token stop = {};
};

/// One task of a cluster in this process. It lends its devices to the sessions of all tasks, keeps the variables that
/// are placed on them, and lets a session of this process run on the whole cluster.
///
/// ```cpp
/// auto cluster = df::net::ClusterSpec::from_flags(argc, argv);
/// df::net::Server server(cluster);
/// if (cluster.job() == "ps") return server.join();
/// df::Session session(graph, {.target = server.target()});
/// ```
///
/// Anybody who knows the cluster's secret may run any graph here. A cluster without a secret has only Unix sockets, for
/// processes of this process's user, and TLS that verifies peers, unless the spec says `insecure`. The task of
/// `ClusterSpec::local()` listens nowhere. docs/security.md lists who can do what.
///
/// Thread safety: all functions may be called from any thread.
/// Errors of the constructor: InvalidArgument for a spec without a task of this process, and for a device that is null
/// or does not have a name of this task and its incarnation. InvalidArgument, naming task and address, for any task's
/// address that is malformed, or that is exposed (`Transport::is_exposed`) without a secret. Also the errors of
/// `Transport::listen`.
class Server {
 public:
  explicit Server(const ClusterSpec& cluster, ServerOptions options = {});
  /// Stops the task.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// For `SessionOptions::target`, also of several sessions. With `filters` ("/job:ps", "/job:worker/task:0"), a
  /// session knows only the other tasks that match a filter, and waits for no others. The target keeps the server's
  /// parts alive, but once the server has stopped it runs nothing in other tasks. Errors: InvalidArgument for a
  /// filter that is not a device name or matches no task of the cluster, unless this task is the whole cluster.
  std::shared_ptr<SessionTarget> target(std::vector<std::string> filters = {}) const;

  /// Blocks until `stop` is called, or the options end it; then the server has stopped. Notes SIGTERM meanwhile, which
  /// therefore does not end the process. Returns 0, for main.
  int join(const JoinOptions& options = {});
  /// Ends the running steps and all connections; waiting calls get Unavailable. A second call waits for the first. On
  /// a thread that is already inside `stop` (in `ServerOptions::log`, or in a callback at the end of a step), `stop`
  /// and `join` do nothing.
  void stop();

  /// "/job:ps/replica:0/task:1".
  const std::string& task() const noexcept;
  /// The address where it listens: the spec's address, with the port that the system chose if the spec's port is 0.
  /// Empty if it listens nowhere, as the task of `ClusterSpec::local()`.
  const std::string& address() const noexcept;
  /// The address of the metrics, with the port that the system chose; empty if there is none.
  std::string metrics_address() const;
  std::uint64_t incarnation() const noexcept;
  const std::vector<std::shared_ptr<Device>>& devices() const noexcept;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// A client of a cluster that is not one of its tasks: for `SessionOptions::target` in a process that lends no
/// device. `cluster` need not name a task of this process. Takes the ops, files, pool, clock, transport,
/// timeouts, `slow_wait`, log, callbacks, random numbers and incarnation from `options`. Errors: as of `Server`.
std::shared_ptr<SessionTarget> connect(const ClusterSpec& cluster, ServerOptions options = {});

}  // namespace dflow::net
