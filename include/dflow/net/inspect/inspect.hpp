#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/inspect/task_status.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {
class Clock;
}

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
/// Thread safety: may be called from several threads at once. Errors of a task stand in its report: Unavailable,
/// DeadlineExceeded, Unauthenticated.
std::vector<TaskReport> inspect(const ClusterSpec& cluster, InspectOptions options = {});

/// For people, a few lines a task.
std::string to_text(std::span<const TaskReport> reports);
/// For programs: {"tasks": [{"task": ..., "status": "OK", "steps": [...], ...}]}. Numbers of 64 bits that name
/// something are strings.
std::string to_json(std::span<const TaskReport> reports);

}  // namespace dflow::net

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/net/inspect/inspect.ipp>
#endif
