#pragma once

#include <dflow/base/plain_nan.hpp>
#include <dflow/train/progress.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dflow::train {

namespace detail {

/// Time of the machine's steady clock without a thread for timers.
Clock::time_point steady_now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return Clock::time_point(std::chrono::duration_cast<Duration>(since));
}

}  // namespace detail

Progress::Progress(std::int64_t total_steps, const ProgressOptions& options)
    : total_(std::max<std::int64_t>(0, total_steps)),
      out_(options.out),
      rewrites_line_(options.style == ProgressOptions::Style::bar ||
                     (options.style == ProgressOptions::Style::automatic && isatty(fileno(options.out)) == 1)),
      every_(options.every > 0 ? options.every : std::max<std::int64_t>(1, total_steps / 20)),
      clock_(options.clock) {
  start_ = now_ = shown_ = clock_ != nullptr ? clock_->now() : detail::steady_now();
}

Progress::~Progress() {
  if (rewrites_line_ && done_ > 0 && (total_ == 0 || done_ < total_)) std::fputc('\n', out_);
}

void Progress::step(double loss) {
  now_ = clock_ != nullptr ? clock_->now() : detail::steady_now();
  constexpr double memory = 0.95;
  // One loss that is no number is shown, and no part of the means behind it.
  loss_ = done_ == 0 || !std::isfinite(loss_) ? loss : memory * loss_ + (1 - memory) * loss;
  ++done_;
  const bool is_last = done_ == total_;
  const bool is_due = rewrites_line_ ? now_ - shown_ >= std::chrono::milliseconds(100) : done_ % every_ == 0;
  if (is_due || is_last) show(is_last);
}

double Progress::rate() const {
  const double seconds = std::chrono::duration<double>(now_ - start_).count();
  return seconds > 0 ? static_cast<double>(done_) / seconds : 0;
}

void Progress::show_value(std::string_view name, double value) {
  const auto same = std::find_if(values_.begin(), values_.end(), [&](const auto& each) { return each.first == name; });
  if (same != values_.end()) {
    same->second = value;
  } else {
    values_.emplace_back(name, value);
  }
}

std::string Progress::line() const {
  std::string text = progress_line();
  for (const auto& [name, value] : values_) {
    char number[32];
    std::snprintf(number, sizeof number, " %.4g", plain_nan(value));
    text += "  " + name + number;
  }
  return text;
}

std::string Progress::progress_line() const {
  constexpr int width = 24;
  // Without a number of steps there is neither a share nor an end to estimate.
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 0.0;
  const int filled = static_cast<int>(std::min(1.0, share) * width);
  const double steps_per_second = rate();
  const auto steps_left = static_cast<double>(std::max<std::int64_t>(0, total_ - done_));
  const double left = steps_per_second > 0 ? steps_left / steps_per_second : 0;
  const auto seconds = static_cast<long long>(std::ceil(std::clamp(left, 0.0, 1e9)));
  char text[160];
  if (total_ == 0) {
    std::snprintf(text, sizeof text, "%7lld steps %9.1f steps/s  loss %.4f", static_cast<long long>(done_),
                  steps_per_second, plain_nan(loss_));
    return text;
  }
  std::snprintf(text, sizeof text, "%7lld/%lld [%.*s%.*s] %9.1f steps/s  ETA %lld:%02lld  loss %.4f",
                static_cast<long long>(done_), static_cast<long long>(total_), filled, "########################",
                width - filled, "........................", steps_per_second, seconds / 60, seconds % 60,
                plain_nan(loss_));
  return text;
}

void Progress::show(bool is_last) {
  shown_ = now_;
  std::string text = line();
  if (rewrites_line_) {
    const std::size_t width = text.size();
    if (width < line_width_) text.append(line_width_ - width, ' ');  // over the end of a longer one
    line_width_ = width;
    std::fprintf(out_, "\r%s%s", text.c_str(), is_last ? "\n" : "");
  } else {
    std::fprintf(out_, "%s\n", text.c_str());
  }
  std::fflush(out_);
}

}  // namespace dflow::train
