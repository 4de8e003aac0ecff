#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/nn/ctc_rows.hpp>
#include <dflow/ops/nn/ctc.hpp>

#include <algorithm>
#include <limits>

namespace dflow::detail {

CtcInputs ctc_inputs(const KernelContext& context, int lengths) {
  with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  const AnyTensor& inputs = context.input(0);
  if (inputs.dim(2) > std::numeric_limits<std::int32_t>::max()) context.fail("inputs have too many classes for int32");
  const auto values = context.input(lengths).span<std::int32_t>();
  for (std::size_t b = 0; b < values.size(); ++b) {
    if (values[b] < 0 || values[b] > inputs.dim(0)) {
      context.fail(str_cat("sequence_length[", b, "] = ", values[b], " is outside [0, ", inputs.dim(0), "]"));
    }
  }
  return {inputs.dim(0), inputs.dim(1), inputs.dim(2), &inputs};
}

void read_ctc_row(const CtcInputs& inputs, std::int64_t t, std::int64_t b, std::span<double> row) {
  visit_dtype<CtcTypes>(inputs.values->dtype(), [&]<class T>() {
    const T* const from = static_cast<const T*>(inputs.values->raw_data()) + (t * inputs.size + b) * inputs.classes;
    std::copy(from, from + row.size(), row.begin());
  });
}

}  // namespace dflow::detail
