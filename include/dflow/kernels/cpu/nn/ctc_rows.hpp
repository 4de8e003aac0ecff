#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include <cstdint>
#include <span>

namespace dflow::detail {

/// Inputs [time, size, classes] of float or double.
struct CtcInputs {
  std::int64_t time, size, classes;
  const AnyTensor* values;

  std::int32_t blank() const { return static_cast<std::int32_t>(classes - 1); }
};

/// The inputs of a run, after the checks of the op's shape function. Fails for a length outside [0, time]: input
/// `lengths`.
CtcInputs ctc_inputs(const KernelContext& context, int lengths);

/// Copies the classes of item `b` at time t.
void read_ctc_row(const CtcInputs& inputs, std::int64_t t, std::int64_t b, std::span<double> row);

}  // namespace dflow::detail
