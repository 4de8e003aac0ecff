#pragma once

/// Public: what a running task says of itself.

#include <dflow/base/duration.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/inspect/task_status.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::net {

class ClusterSpec;
class Transport;

/// How a running cluster is asked how it is. What is left null it makes for itself.
struct InspectOptions {
  std::shared_ptr<Transport> transport = nullptr;
  std::shared_ptr<Clock> clock = nullptr;
  std::function<std::uint64_t()> random = nullptr;
  /// After which a task that has not answered is said to be silent.
  Duration timeout = std::chrono::seconds(5);
};

/// What one task of a cluster says, or why it says nothing.
struct TaskReport {
  std::string task;
  std::string address;
  Status status;
  TaskStatus said;  ///< empty after an error
};

/// Asks all tasks of a cluster, side by side, for their state: incarnations, sessions, steps that run, what is waited
/// for. The cluster's secret lets it in; the tasks' ops need not be known. Blocks until all have answered or the
/// time is over.
///
/// Thread safety: may be called from several threads at once. Errors of a task stand in its report: Unavailable, also
/// where it has another secret, or one and the cluster's spec has none, which the message says; DeadlineExceeded.
std::vector<TaskReport> inspect(const ClusterSpec& cluster, InspectOptions options = {});

/// What one task of a cluster says of its log, or why it says nothing. Times are of the clock of whoever asks, as far
/// as one round trip tells: wrong by at most half of what that took.
struct LogReport {
  std::string task;
  std::string address;
  Status status;
  LogReply said;  ///< empty after an error
};

/// Asks all tasks of a cluster, side by side, about their logs: what they ran, sent and received for steps. A task
/// keeps one only while it is switched on, the last `TaskLog::max_records` things. As `inspect` else.
std::vector<LogReport> inspect_logs(const ClusterSpec& cluster, const LogRequest& request, InspectOptions options = {});

/// For people, a few lines a task.
std::string to_text(std::span<const TaskReport> reports);
/// For programs: {"tasks": [{"task": ..., "status": "OK", "steps": [...], ...}]}. Numbers of 64 bits that name
/// something are strings.
std::string to_json(std::span<const TaskReport> reports);
/// Both of logs: for people a line a task, then a line for each record of all tasks in the order of their beginnings.
std::string to_text(std::span<const LogReport> reports);
std::string to_json(std::span<const LogReport> reports);

}  // namespace dflow::net
