#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/net/tasks/step_table.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace dflow::net {

/// Logs, once for each, the tensors that have been waited for too long. It looks at all waits every `interval`. A
/// wait that it finds twice has lasted for one interval at least, and less than two. Waiting itself costs nothing
/// more.
///
/// Thread safety: safe. `log` is called on the clock's thread.
class WaitWatch : public std::enable_shared_from_this<WaitWatch> {
 public:
  /// If the interval is not positive, the watch never looks.
  WaitWatch(std::shared_ptr<StepTable> steps, std::shared_ptr<Clock> clock, Duration interval,
            std::function<void(std::string_view)> log)
      : steps_(std::move(steps)), clock_(std::move(clock)), interval_(interval), log_(std::move(log)) {}

  void start();
  /// After `stop` no new line of the log begins.
  void stop();

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  ///< step, and hash of the tensor's key
  static constexpr std::size_t max_waits = 4096;
  static constexpr int max_lines = 8;  ///< of one look

  void look();
  bool is_stopped() const;

  const std::shared_ptr<StepTable> steps_;
  const std::shared_ptr<Clock> clock_;
  const Duration interval_;
  const std::function<void(std::string_view)> log_;
  mutable std::mutex mutex_;
  std::map<Key, bool> seen_;  ///< by the last look; true: said
  TimerId timer_{};
  bool is_stopped_ = false;
};

}  // namespace dflow::net
