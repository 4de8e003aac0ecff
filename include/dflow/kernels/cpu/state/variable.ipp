#pragma once

#include <dflow/kernels/cpu/state/variable.hpp>

namespace dflow {

void detail::AssignKernel::operator()(KernelContext& context) const {
  assign_variable(context, attrs, [&](const AnyTensor& value) { return value.deep_copy(*context.device().allocator); });
}

std::int64_t detail::checked_row_size(const KernelContext& context, const AnyTensor& variable, const AnyTensor& indices,
                                      const AnyTensor& updates) {
  if (variable.rank() == 0) context.fail("the variable is a scalar and has no rows");
  const Shape row = variable.shape().subshape(1, variable.rank());
  if (updates.shape() != indices.shape().concatenated(row)) {
    context.fail(str_cat("updates of shape ", updates.shape().to_string(), " do not fit indices ",
                         indices.shape().to_string(), " and a variable ", variable.shape().to_string()));
  }
  return row.num_elements();
}

void detail::fail_bad_index(const KernelContext& context, std::int64_t position, std::int64_t index,
                            std::int64_t limit) {
  context.fail(str_cat("indices[", position, "] = ", index, " is outside [0, ", limit, ")"));
}

}  // namespace dflow
