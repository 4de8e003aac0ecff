#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/protocol/clock_offset.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/net/tasks/step_table.hpp>
#include <dflow/runtime/stats_collector.hpp>
#include <dflow/session/target.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace dflow::net {

namespace detail {
/// Chooses tasks of a cluster: the tasks that match one of the names, "/job:ps", "/job:worker/task:0", or all tasks
/// if there is no name.
///
/// Thread safety: const after construction.
class TaskFilters {
 public:
  /// Errors: InvalidArgument for a filter that is no device's name.
  explicit TaskFilters(std::span<const std::string> filters);

  bool want(const std::string& task) const;
  /// Errors: InvalidArgument for a filter that matches none of the tasks.
  void check(std::span<const std::string> tasks) const;

 private:
  struct Filter {
    DeviceName name;
    std::string text;
  };
  std::vector<Filter> filters_;
};

/// Adds another task's statistics of its part of a step, if it was traced. The times are moved to the own clock,
/// which showed `asked` and `returned` around the exchange and shows `now`.
void add_stats(StatsCollector& to, const RunShareReply& reply, const ClockOffset& clock, std::int64_t asked,
               std::int64_t returned, std::int64_t now);
}  // namespace detail

/// The other tasks of a cluster as one session of this process has them: the master's side. A step costs each task
/// one small message and its reply. The task's part was sent there once, and is sent again if the connection was lost
/// in between.
///
/// Thread safety: safe.
class ClusterTasks final : public RemoteTasks {
 public:
  struct Options {
    std::string client;  ///< the task that this process is, or is called
    std::uint64_t session = 0;
    std::shared_ptr<Peers> peers;
    std::shared_ptr<StepTable> steps;
    std::shared_ptr<Clock> clock;
    std::shared_ptr<ThreadPool> pool;        ///< waits for the tasks' answers
    std::shared_ptr<TaskLog> log = nullptr;  ///< of tensors, if given
  };

  using Found = UniqueFunction<void(Status, std::unique_ptr<ClusterTasks>)>;

  /// Asks each of `tasks` for its devices. Errors: Unavailable when some have not answered in `timeout`, with the list
  /// of them. `done` is called once, from any thread, and must not block.
  static void find_async(Options options, const std::vector<std::string>& tasks, Duration timeout, Found done);
  /// The same, and waits.
  static std::unique_ptr<ClusterTasks> find(Options options, const std::vector<std::string>& tasks, Duration timeout,
                                            const std::stop_token& stop);

  ~ClusterTasks() override;

  std::span<const DeviceInfo> devices() const noexcept override { return devices_; }
  std::shared_ptr<RemoteShare> share(const std::string& task, std::vector<RemotePartition> partitions) override;
  std::shared_ptr<Rendezvous> begin_step(std::uint64_t id) override;

  /// The state that shares and their runs keep.
  struct State {
    Options options;
    std::map<std::string, std::uint64_t> incarnations;  ///< of the tasks, as the session has found them
    std::map<std::string, ClockOffset> clocks;          ///< theirs; each run of a share is a sample
    std::atomic<std::uint64_t> next_share{1};
  };

 private:
  ClusterTasks() = default;

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<DeviceInfo> devices_;
};

}  // namespace dflow::net
