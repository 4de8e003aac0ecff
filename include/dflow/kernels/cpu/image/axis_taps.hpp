#pragma once

#include <dflow/ops/image/resize.hpp>

#include <cstdint>
#include <vector>

namespace dflow::cpu {

/// The weights of a resize along one axis: output i is the sum of weights[t] * input[inputs[t]] for t in
/// [first[i], first[i + 1]). They are found once for all rows or columns.
struct AxisTaps {
  std::vector<std::int64_t> first{0};
  std::vector<std::int64_t> inputs;
  std::vector<float> weights;
  float scale = 1;         ///< of each sum
  bool is_copy = false;    ///< output i is input i
  bool are_lines = false;  ///< two taps a and b with weights 1 - t and t, to be computed as a + (b - a) * t

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(first.size()) - 1; }
};

/// Precondition: in and out are positive.
AxisTaps axis_taps(ResizeMethod method, const ResizeAttrs& attrs, std::int64_t in, std::int64_t out);
/// The sums of the gradient: output i is what flows back to input i of `taps`, which has `in` inputs.
AxisTaps transposed(const AxisTaps& taps, std::int64_t in);

}  // namespace dflow::cpu
