#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/net/inspect/metrics.hpp>
#include <dflow/net/inspect/task_status.hpp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/net/protocol/visit.hpp>
#include <dflow/net/tasks/client_sessions.hpp>
#include <dflow/runtime/op_set.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::net {

/// The master of this task: it keeps sessions for clients that have none of their own, runs their steps on the
/// cluster, lists its devices and resets its containers. It does for named graphs the work that `Session` does in a
/// client's process.
///
/// A session belongs to the client that made it, and ends when that has no connection any more; so do its steps and
/// partial runs, everywhere. The variables that they have made live as long as the devices.
///
/// Thread safety: safe. No function blocks; long work runs in the pool.
class Master : public std::enable_shared_from_this<Master> {
 public:
  struct Options {
    std::string task;
    std::uint64_t incarnation = 0;
    std::vector<std::shared_ptr<Device>> devices;  ///< of this task
    OpSet ops = standard_ops;
    std::vector<std::string> other_tasks;
    std::shared_ptr<Peers> peers;
    std::shared_ptr<StepTable> steps;
    std::shared_ptr<ThreadPool> pool;  ///< imports graphs, compiles steps and calls back
    std::shared_ptr<Clock> clock;
    std::function<std::uint64_t()> random;
    std::function<std::uint64_t()> next_session;  ///< numbers of sessions of this task in others
    Duration startup_timeout = std::chrono::seconds(60);
    std::shared_ptr<TaskCounters> counters = nullptr;  ///< counts steps, if given
    std::shared_ptr<TaskLog> log = nullptr;            ///< of tensors, if given
    // Limits for one client: sessions, partial runs of each session, and bytes of their graphs as received.
    std::size_t max_sessions = 256;
    std::size_t max_partial_runs = 256;
    std::uint64_t max_graph_bytes = std::uint64_t{2} << 30;
  };

  explicit Master(Options options);
  ~Master();

  /// False, and nothing is done, if the method is none of a master's. A thrown error becomes the reply.
  bool handle(const Visit& visit, Incoming& request, Responder& respond);
  /// Forgets the sessions that were made in a visit and ends their steps. Precondition: it is over.
  void forget(const Visit& visit, const Status& why);
  /// Ends all sessions and steps; none begins any more.
  void stop(const Status& why);
  detail::SessionCount count_sessions() const;
  /// Adds the sessions of clients, and their steps and partial runs, to the status of the task.
  void add_to(TaskStatus& status) const;

 private:
  class HostedSession;
  struct Ending;
  struct Run;
  struct Partial;
  struct Request;

  void create_session(const Visit& visit, Incoming& request, Responder& respond);
  void extend_session(const Visit::Id& visit, Incoming& request, Responder& respond);
  void run_session(const Visit::Id& visit, Incoming& request, Responder& respond);
  void end_session(const Visit::Id& visit, std::uint64_t session);
  void begin_partial_run(const Visit::Id& visit, Incoming& request, Responder& respond);
  void continue_partial_run(const Visit::Id& visit, Incoming& request, Responder& respond);
  void end_partial_run(const Visit::Id& visit, const PartialRunName& name);
  void list_devices(const NameList& filters, Responder& respond);
  void reset_cluster(ResetCluster reset, Responder& respond);

  std::vector<std::string> others_that_match(const std::vector<std::string>& filters) const;
  ClusterTasks::Options cluster_options() const;
  /// Errors: NotFound.
  std::shared_ptr<HostedSession> find(const Visit::Id& visit, std::uint64_t session) const;
  /// Takes it out; null if it is not there.
  std::shared_ptr<HostedSession> take(const Visit::Id& visit, std::uint64_t session);
  /// With the mutex held: counts `bytes` more of the client's graphs. Errors: ResourceExhausted.
  void reserve(const Visit::Id& visit, HostedSession& session, std::uint64_t bytes);
  /// Ends them, and lets go of them in the pool.
  void drop(std::vector<std::shared_ptr<HostedSession>> sessions, const Status& why);
  void start(const std::shared_ptr<Run>& run);

  const Options options_;
  mutable std::mutex mutex_;
  Status stopped_;
  detail::ClientSessions<HostedSession> sessions_;
  std::uint64_t next_session_ = 1;
};

}  // namespace dflow::net
