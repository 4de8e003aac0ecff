#pragma once

#include <dflow/core/any_tensor.hpp>

#include <limits>
#include <vector>

namespace dflow {

/// How values are spread over buckets. Bucket i counts the values that are at least limits[i - 1] and less than
/// limits[i].
///
/// Thread safety: a value type.
struct Histogram {
  double min = std::numeric_limits<double>::max();     ///< of all values; without any the largest double
  double max = std::numeric_limits<double>::lowest();  ///< without any values the lowest double
  double count = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits;  ///< increasing
  std::vector<double> counts;  ///< of each bucket

  friend bool operator==(const Histogram&, const Histogram&) = default;
};

/// The histogram of all elements with TensorFlow's limits: 0, and in both directions 1e-12 * 1.1^k below 1e20, then the
/// largest double (tensorflow/core/lib/histogram). Buckets side by side that count nothing are one.
///
/// Errors: InvalidArgument, as in TensorFlow, if an element is NaN or infinite, and for elements that are no real
/// numbers.
Histogram histogram_of(const AnyTensor& values);

}  // namespace dflow
