// The decisions of dflow-launch, without processes: the tasks and their flags, how their lines are shown, and the
// effect of one task's end on the others.
#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_spec.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::launch {

struct Numbers {
  int ps = 1;
  int workers = 1;
  bool has_chief = false;
  bool has_evaluator = false;

  /// The addresses that the tasks need; an evaluator has none.
  std::size_t addresses() const noexcept {
    return static_cast<std::size_t>(ps) + static_cast<std::size_t>(workers) + (has_chief ? 1u : 0u);
  }
};

struct Task {
  std::string job;
  int index = 0;
  std::vector<std::string> command;

  std::string label() const { return str_cat(job, ' ', index); }
};

/// The tasks in the order they are started: ps, chief, workers, evaluator. Each runs `program` with the cluster's flags
/// behind its own arguments. An empty `secret_file` stands for --dflow_insecure.
inline std::vector<Task> plan_tasks(const Numbers& numbers, const std::vector<std::string>& addresses,
                                    const std::vector<std::string>& program, const std::string& secret_file) {
  std::vector<Task> tasks;
  for (int i = 0; i < numbers.ps; ++i) tasks.push_back({"ps", i, program});
  if (numbers.has_chief) tasks.push_back({"chief", 0, program});
  for (int i = 0; i < numbers.workers; ++i) tasks.push_back({"worker", i, program});
  net::ClusterSpec spec;
  for (std::size_t i = 0; i < tasks.size(); ++i) spec.add_task(tasks[i].job, tasks[i].index, addresses.at(i));
  if (numbers.has_evaluator) tasks.push_back({"evaluator", 0, program});
  for (Task& task : tasks) {
    task.command.push_back(str_cat("--dflow_cluster=", spec.jobs_to_string()));
    task.command.push_back(str_cat("--dflow_job=", task.job));
    task.command.push_back(str_cat("--dflow_task=", task.index));
    task.command.push_back(secret_file.empty() ? std::string("--dflow_insecure")
                                               : str_cat("--dflow_secret_file=", secret_file));
  }
  return tasks;
}

/// The argument as one word of a shell's line.
inline std::string quoted_for_shell(const std::string& argument) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char c : argument) {
    if (c == '\'') quoted += "'\\'";
    quoted += c;
  }
  return quoted + "'";
}

/// Cuts the output of a task into lines. A line longer than `longest` is cut there.
class LineCutter {
 public:
  static constexpr std::size_t longest = 64 * 1024;

  template <class Emit>
  void add(std::string_view text, Emit&& emit) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::size_t taken = std::min(std::min(end, text.size()), longest - pending_.size());
      pending_ += text.substr(0, taken);
      text.remove_prefix(taken);
      const bool is_ended = !text.empty() && text.front() == '\n';
      if (is_ended) text.remove_prefix(1);
      if (is_ended || pending_.size() == longest) emit(std::string_view(std::exchange(pending_, std::string())));
    }
  }
  /// The last line, if no newline ended it.
  template <class Emit>
  void finish(Emit&& emit) {
    if (!pending_.empty()) emit(std::string_view(std::exchange(pending_, std::string())));
  }

 private:
  std::string pending_;
};

/// "[worker 1] ", as wide as the widest; in the colour of its number on a terminal.
inline std::string prefix_of(const Task& task, std::size_t number, std::size_t width, bool is_coloured) {
  const std::string label = task.label();
  const std::string padding(width > label.size() ? width - label.size() : 0, ' ');
  if (!is_coloured) return str_cat('[', label, "] ", padding);
  static constexpr int colours[] = {36, 33, 32, 35, 34, 31};
  return str_cat("\033[", colours[number % std::size(colours)], "m[", label, "]\033[0m ", padding);
}

enum class OnFailure { stop, go_on, restart };

/// Decides the next action after tasks have ended.
///
/// With a chief, all is over when the chief ends, and the result is its exit status. Without a chief, all is over when
/// the last worker has ended, or the last task if there are no workers. The result is then the status of the first task
/// that failed. Under `stop` the first failure ends all; under `restart` one beyond `max_restarts` of its task does.
class Outcome {
 public:
  enum class Next { wait, restart, stop };

  Outcome(std::vector<Task> tasks, OnFailure policy, int max_restarts)
      : tasks_(std::move(tasks)),
        restarts_(tasks_.size(), 0),
        is_running_(tasks_.size(), true),
        policy_(policy),
        max_restarts_(max_restarts) {}

  /// A task has ended; `status` is 128 + n after signal n.
  Next ended(std::size_t task, int status) {
    if (status != 0 && policy_ == OnFailure::restart && restarts_[task] < max_restarts_) {
      ++restarts_[task];
      return Next::restart;
    }
    is_running_[task] = false;
    const bool is_chief = tasks_[task].job == "chief";
    if (status != 0 && first_failure_ == 0) first_failure_ = status;
    if (is_chief) chief_ = status;
    return (status != 0 && policy_ != OnFailure::go_on) || is_chief || is_over() ? Next::stop : Next::wait;
  }

  int result() const noexcept { return policy_ == OnFailure::go_on && chief_ ? *chief_ : first_failure_; }
  int restarts(std::size_t task) const noexcept { return restarts_[task]; }

 private:
  bool is_over() const {
    const auto is_left = [&](auto&& counts) {
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (is_running_[i] && counts(tasks_[i].job)) return true;
      }
      return false;
    };
    const auto is_of = [&](std::string_view job) {
      return std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& task) { return task.job == job; });
    };
    if (is_of("chief")) return false;
    if (is_of("worker")) return !is_left([](const std::string& job) { return job == "worker"; });
    return !is_left([](const std::string&) { return true; });
  }

  std::vector<Task> tasks_;
  std::vector<int> restarts_;
  std::vector<bool> is_running_;
  OnFailure policy_;
  int max_restarts_;
  int first_failure_ = 0;
  std::optional<int> chief_;
};

}  // namespace dflow::launch
