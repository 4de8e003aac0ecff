#pragma once

#include <dflow/base/clock.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

struct ProgressOptions {
  std::FILE* out = stderr;
  /// Rewrites one line (bar), or writes a line per `every` steps (lines). By default the style suits `out`.
  enum class Style : std::uint8_t { automatic, bar, lines } style = Style::automatic;
  /// Steps between two lines; 0: a twentieth of all.
  std::int64_t every = 0;
  /// Null: the machine's clock.
  Clock* clock = nullptr;
};

/// Shows how far a training loop has come: steps, rate, time left, loss.
///
/// ```cpp
/// df::train::Progress progress(steps);
/// for (int i = 0; i < steps; ++i) progress.step(session.run(feeds, loss, train).scalar());
/// ```
/// Thread safety: one thread at a time. `step` blocks only to write.
class Progress {
 public:
  /// If `total_steps` is 0 or less, the number is not known, and only the finished steps are shown.
  explicit Progress(std::int64_t total_steps, const ProgressOptions& options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts one more step with its `loss`. The bar shows a running mean of the last losses.
  void step(double loss);
  /// Shows a number behind the loss, from the next line on, until it is set again.
  void show_value(std::string_view name, double value);
  /// Steps per second since the first call of `step`.
  double rate() const;
  /// "  512/1000 [#####.....]  812.3 steps/s  ETA 0:01  loss 0.1234  accuracy 0.9"
  std::string line() const;

 private:
  std::string progress_line() const;
  void show(bool is_last);

  std::int64_t total_;
  std::FILE* out_;
  bool rewrites_line_;
  std::int64_t every_;
  Clock* clock_;
  Clock::time_point start_{};
  Clock::time_point now_{};
  Clock::time_point shown_{};
  std::int64_t done_ = 0;
  double loss_ = 0;
  std::vector<std::pair<std::string, double>> values_;  ///< behind the loss
  std::size_t line_width_ = 0;                          ///< of the line to rewrite
};

}  // namespace dflow::train
