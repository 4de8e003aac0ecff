#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/random/multinomial.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// The sums of the probabilities up to each class, times a factor. False if no logit is finite.
template <class T>
bool sum_probabilities(const T* logits, std::span<double> sums, CpuLevel level) {
  constexpr double never = -std::numeric_limits<double>::infinity();
  double largest = never;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = static_cast<double>(logits[i]);
    if (!std::isfinite(sums[i])) sums[i] = never;
    largest = std::max(largest, sums[i]);
  }
  if (largest == never) return false;
  for (double& number : sums) number -= largest;
  vexp(static_cast<std::int64_t>(sums.size()), sums.data(), sums.data(), level);
  double sum = 0;
  for (double& number : sums) number = sum += number;
  return true;
}

}  // namespace detail

void draw_classes(KernelContext& context, const dflow::detail::NodeStream& stream) {
  const AnyTensor& logits = context.input(0);
  const Shape shape = dflow::detail::inferred_shape(context);
  const std::int64_t rows = shape[0], count = shape[1], classes = logits.dim(1);
  std::int64_t* const y = context.allocate_output<std::int64_t>(0, shape).data();
  if (shape.num_elements() == 0) return;
  // As many words as TensorFlow sets aside.
  const PhiloxStream part = stream.reserve(rows * ((count + 3) / 4 * 4) * 2);
  const CpuLevel level = cpu_options(context).max_level;
  const double cost_ns = static_cast<double>(classes) * 3 +
                         static_cast<double>(count) * (20 + std::log2(static_cast<double>(classes)) * 3);
  visit_dtype<FloatTypes>(logits.dtype(), [&]<class T>() {
    const T* const x = static_cast<const T*>(logits.raw_data());
    context.pool().parallel_for(rows, cost_ns, [&](std::int64_t first, std::int64_t end) {
      std::vector<double> sums(static_cast<std::size_t>(classes));
      for (std::int64_t row = first; row < end; ++row) {
        if (!detail::sum_probabilities(x + row * classes, std::span(sums), level)) {
          context.fail(str_cat("row ", row, " of logits has no number that is finite"));
        }
        PhiloxStream words_of_row = part;
        std::int64_t sample = row * count;  // of all
        words_of_row.skip(static_cast<std::uint64_t>(sample / 2));
        PhiloxWords words = words_of_row.next();
        for (const std::int64_t last = sample + count; sample < last; ++sample) {
          const int half = static_cast<int>(sample % 2) * 2;
          const double wanted = uniform_double(words[half], words[half + 1]) * sums.back();
          y[sample] = std::upper_bound(sums.begin(), sums.end(), wanted) - sums.begin();
          if (half != 0) words = words_of_row.next();
        }
      }
    });
  });
}

}  // namespace dflow::cpu
