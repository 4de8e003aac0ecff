#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/tasks/wait_watch.hpp>
#include <dflow/net/tasks/worker.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace dflow::net {

void WaitWatch::start() {
  if (interval_ <= Duration::zero()) return;
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  timer_ = clock_->schedule_after(interval_, [weak = weak_from_this()] {
    const std::shared_ptr<WaitWatch> self = weak.lock();
    if (self == nullptr) return;
    detail::tell([&] { self->look(); });  // a log that throws, or no memory, does not end the watch
    detail::tell([&] { self->start(); });
  });
}

void WaitWatch::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  clock_->cancel(timer_);
}

bool WaitWatch::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

void WaitWatch::look() {
  const std::vector<StepTable::Wait> waits = steps_->waits(max_waits);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(interval_).count();
  std::vector<std::string> lines;
  int num_left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    std::map<Key, bool> now;
    for (const StepTable::Wait& wait : waits) {
      const Key key{wait.step, wait.key.hash()};
      const auto before = seen_.find(key);
      bool is_said = before != seen_.end() && before->second;
      if (before != seen_.end() && !is_said) {
        is_said = true;
        if (static_cast<int>(lines.size()) < max_lines) {
          lines.push_back(str_cat("for over ", seconds, " s, ", to_string(describe(wait))));
        } else {
          ++num_left_out;
        }
      }
      now.emplace(key, is_said);
    }
    seen_ = std::move(now);
  }
  if (num_left_out != 0) lines.push_back(str_cat("and ", num_left_out, " others wait for over ", seconds, " s"));
  for (const std::string& line : lines) {
    if (is_stopped()) return;  // since, perhaps by what logs
    log_(line);
  }
}

}  // namespace dflow::net
