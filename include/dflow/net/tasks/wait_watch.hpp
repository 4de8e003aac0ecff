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

/// Says, once for each, which tensors have been waited for too long: it looks every `interval` what is waited for, and
/// what it finds twice has waited for one interval at least, and less than two. Waiting itself costs nothing more.
///
/// Thread safety: safe. `log` is called on the clock's thread.
class WaitWatch : public std::enable_shared_from_this<WaitWatch> {
 public:
  /// An interval that is not positive looks never.
  WaitWatch(std::shared_ptr<StepTable> steps, std::shared_ptr<Clock> clock, Duration interval,
            std::function<void(std::string_view)> log)
      : steps_(std::move(steps)), clock_(std::move(clock)), interval_(interval), log_(std::move(log)) {}

  void start();
  /// No line is begun any more.
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
