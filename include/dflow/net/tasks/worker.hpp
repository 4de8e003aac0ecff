#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/net/inspect/metrics.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/inspect/task_status.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/protocol/visit.hpp>
#include <dflow/net/tasks/client_sessions.hpp>
#include <dflow/net/tasks/step_table.hpp>
#include <dflow/runtime/op_set.hpp>
#include <dflow/session/part_compiler.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::net {

/// Serves other tasks: lists the devices of this task, compiles shares of their steps, runs the shares, and hands
/// over tensors. The sessions of clients live here until the clients close them or their connection is gone. The
/// variables that their steps have made live as long as the devices.
///
/// Thread safety: safe. No function blocks; long work runs in the pool.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  struct Options {
    std::string task;
    std::uint64_t incarnation = 0;
    std::vector<std::shared_ptr<Device>> devices;
    OpSet ops = standard_ops;
    std::shared_ptr<ThreadPool> pool;  ///< compiles shares and runs the units of steps
    std::shared_ptr<Clock> clock;
    std::shared_ptr<StepTable> steps;
    std::shared_ptr<TaskCounters> counters = nullptr;  ///< counts, if given
    std::shared_ptr<TaskLog> log = nullptr;            ///< logs the work for steps, if given
    // Limits on the memory that one client may hold here.
    std::size_t max_sessions = 1024;
    std::size_t max_shares = 65536;
  };

  /// Errors: the errors of `PartCompiler`.
  explicit Worker(Options options);
  ~Worker();

  /// Returns false and does nothing if the method is not a worker's. An exception that it throws is to be the reply.
  bool handle(const Visit& visit, Incoming& request, Responder& respond);
  /// Forgets the sessions that were made in a visit, and ends its steps. Precondition: it is over.
  void forget(const Visit& visit, const Status& why);
  /// Ends steps that wait here for tensors of that task, because the tensors may have been lost on the way. Only
  /// steps count that had come here before `mark` (`StepTable::next_entry`).
  void lose_tensors_of(const TaskIdentity& peer, std::uint64_t mark, const Status& why);
  /// Ends all steps; none begins any more.
  void stop(const Status& why);
  /// The present state: sessions, runs and tensors that are waited for.
  TaskStatus status() const;
  detail::SessionCount count_sessions() const;

 private:
  struct ClientShares;
  struct Run;

  void list_devices(Responder& respond);
  void register_share(const Visit& visit, Incoming& request, Responder& respond);
  void forget_share(const Visit::Id& visit, const ShareName& name);
  void close_session(const Visit::Id& visit, std::uint64_t session);
  void run_share(const Visit& visit, Incoming& request, Responder& respond);
  void cancel_step(const CancelStep& cancel);
  void receive_tensor(const Incoming& request, Responder& respond);
  void take_tensor(const Visit& visit, const Incoming& request);
  std::shared_ptr<CompiledStep> compile(ClientShares& session, const SharePartitions& partitions);
  static void end_registering(ClientShares& session, std::uint64_t number, std::shared_ptr<CompiledStep> step,
                              const Status& status);
  void start(std::shared_ptr<Run> run);
  void finish(const std::shared_ptr<Run>& run, const Status& status);
  void log_sent(const Run& run, std::span<const PushedTensor> pushed);
  /// Ends the runs that `is_meant`.
  void cancel_runs(FunctionRef<bool(const Run&)> is_meant, const Status& why);
  bool logs() const noexcept { return options_.log != nullptr && options_.log->is_on(); }

  const Options options_;
  const Clock::time_point began_;
  mutable std::mutex mutex_;
  Status stopped_;
  detail::ClientSessions<ClientShares> sessions_;
  std::multimap<std::uint64_t, std::shared_ptr<Run>> running_;  ///< by step; a client chooses its number
};

/// A wait in words that travel.
TaskStatus::Wait describe(const StepTable::Wait& wait);
/// The reply to `receive_tensor`.
Outgoing tensor_reply(AnyTensor tensor, bool is_dead);

}  // namespace dflow::net
