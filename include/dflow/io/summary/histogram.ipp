#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/summary/histogram.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace dflow {

namespace detail {

inline constexpr std::size_t positive_histogram_limits = 774;  ///< 1e-12 * 1.1^k below 1e20

/// All limits, increasing: made once by the compiler.
inline constexpr auto histogram_limits = [] {
  constexpr std::size_t half = positive_histogram_limits + 1;
  std::array<double, 2 * half + 1> limits{};
  double limit = 1e-12;
  for (std::size_t i = 1; i < half; ++i, limit *= 1.1) {
    limits[half + i] = limit;
    limits[half - i] = -limit;
  }
  limits[half + half] = std::numeric_limits<double>::max();
  limits[0] = std::numeric_limits<double>::lowest();
  return limits;
}();
static_assert(histogram_limits[histogram_limits.size() - 2] < 1e20 &&
              histogram_limits[histogram_limits.size() - 2] * 1.1 >= 1e20);

/// Counts `values` in `counts`, one a limit, and keeps the other numbers of a histogram.
template <class T>
void count_values(std::span<const T> values, std::vector<double>& counts, Histogram& histogram) {
  for (const T element : values) {
    const auto value = static_cast<double>(element);
    if (std::isnan(value)) throw_error(Status::invalid_argument("a histogram of values of which one is NaN"));
    if (std::isinf(value)) throw_error(Status::invalid_argument("a histogram of values of which one is infinite"));
    const auto above = std::upper_bound(histogram_limits.begin(), histogram_limits.end() - 1, value);
    counts[static_cast<std::size_t>(above - histogram_limits.begin())] += 1;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    histogram.count += 1;
    histogram.sum += value;
    histogram.sum_squares += value * value;
  }
}

}  // namespace detail

Histogram histogram_of(const AnyTensor& values) {
  Histogram histogram;
  std::vector<double> counts(detail::histogram_limits.size());
  visit_dtype<RealTypes>(values.dtype(), [&]<class T>() { detail::count_values(values.span<T>(), counts, histogram); });
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_empty = counts[i] == 0;
    while (is_empty && i + 1 < counts.size() && counts[i + 1] == 0) ++i;
    histogram.limits.push_back(detail::histogram_limits[i]);
    histogram.counts.push_back(counts[i]);
  }
  return histogram;
}

}  // namespace dflow
