#pragma once

#include <dflow/kernels/cpu/array/strided_slice.hpp>
#include <dflow/kernels/cpu/state/variable.hpp>

#include <array>

namespace dflow {

void detail::AssignKernel::operator()(KernelContext& context) const {
  assign_variable(context, attrs, [&](const AnyTensor& value) { return value.deep_copy(*context.device().allocator); });
}

void detail::StridedSliceAssignKernel::operator()(KernelContext& context) const {
  VariableUpdate update({&variable_input(context, 0, context.node().types[0])});
  const AnyTensor& value = context.input(4);
  const StridedPlace place(context, update.value(0).shape(), attrs);
  const bool is_repeated = value.rank() == 0;
  if (!is_repeated && place.box.shape != PartialShape(value.shape())) {
    context.fail(str_cat("the value has shape ", value.shape().to_string(), ", the slice ", place.box.shape.to_string(),
                         " of the variable ", update.value(0).shape().to_string()));
  }
  if (Shape(place.box.size.span()).num_elements() == 0) return;
  AnyTensor& to = update.writable(0, *context.device().allocator);
  strided_copy(context, to.dtype(), place.box.size.span(), value.raw_data(),
               is_repeated ? std::array<std::int64_t, max_rank>{} : place.packed_strides(), element(to, place.first),
               place.strides);
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
