#pragma once

/// Public: asks the running tasks of a cluster for their state and their logs.

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

/// How `inspect` asks a running cluster. It makes each object that is null for itself.
struct InspectOptions {
  std::shared_ptr<Transport> transport = nullptr;
  std::shared_ptr<Clock> clock = nullptr;
  std::function<std::uint64_t()> random = nullptr;
  /// A task that has not answered after this time is reported as silent.
  Duration timeout = std::chrono::seconds(5);
};

/// The state of one task of a cluster, or an error.
struct TaskReport {
  std::string task;
  std::string address;
  Status status;
  TaskStatus said;  ///< empty after an error
};

/// Asks all tasks of a cluster, side by side, for their state: incarnations, sessions, running steps, and tensors
/// that are waited for. The cluster's secret lets the caller in; the caller need not know the tasks' ops. Blocks
/// until all tasks have answered or the time is over.
///
/// Thread safety: may be called from several threads at once. Errors of a task are in its report: DeadlineExceeded,
/// Unavailable. A task with another secret, or with a secret if the cluster's spec has none, is also Unavailable, and
/// the message says so. Thrown errors: InvalidArgument for the cluster's addresses, as of `Server`.
std::vector<TaskReport> inspect(const ClusterSpec& cluster, InspectOptions options = {});

/// The log of one task of a cluster, or an error. Times are on the caller's clock, estimated from one round trip: the
/// error is at most half of the round trip.
struct LogReport {
  std::string task;
  std::string address;
  Status status;
  LogReply said;  ///< empty after an error
};

/// Asks all tasks of a cluster, side by side, for their logs: which steps they ran, and which tensors they sent and
/// received. A task keeps a log only while it is switched on: the last `TaskLog::max_records` records. The rest is as
/// for `inspect`.
std::vector<LogReport> inspect_logs(const ClusterSpec& cluster, const LogRequest& request, InspectOptions options = {});

/// Text for people, a few lines a task.
std::string to_text(std::span<const TaskReport> reports);
/// Text for programs: {"tasks": [{"task": ..., "status": "OK", "steps": [...], ...}]}. Numbers of 64 bits that
/// identify something are strings.
std::string to_json(std::span<const TaskReport> reports);
/// The same for logs. For people: a line for each task, then a line for each record of all tasks, ordered by start
/// time.
std::string to_text(std::span<const LogReport> reports);
std::string to_json(std::span<const LogReport> reports);

}  // namespace dflow::net
