#pragma once

#include <dflow/kernels/cpu/variable.hpp>

#include <string>
#include <utility>

namespace dflow {

DFLOW_INLINE detail::VariableKernel::VariableKernel(const KernelInit& init) {
  const VariableOp::Attrs& attrs = init.node.attrs_as<VariableOp>();
  const std::string& shared = attrs.shared_name.empty() ? init.node.name : attrs.shared_name;
  const std::string key = str_cat(attrs.container, "/", shared);
  const DType dtype = init.node.types[0];
  const auto state = init.device.resources->lookup_or_create<VariableState>(
      key, [&] { return std::make_shared<VariableState>(shared, dtype, attrs.shape); });
  if (state->dtype() != dtype || !state->shape().is_compatible_with(attrs.shape)) {
    throw Error(invalid_argument(str_cat("'", key, "' is kept as ", state->debug_string(), ", wanted ",
                                         dflow::name(dtype), attrs.shape.to_string())));
  }
  handle_ = make_resource_handle(state);
}

DFLOW_INLINE VariableState& detail::variable_input(const KernelContext& context, int i, DType dtype) {
  VariableState& state = context.resource<VariableState>(i);
  if (state.dtype() != dtype) {
    context.fail(str_cat(state.debug_string(), " does not hold elements of type ", dflow::name(dtype)));
  }
  return state;
}

DFLOW_INLINE void detail::ReadVariableKernel::operator()(KernelContext& context) const {
  context.set_output(0, variable_input(context, 0, context.node().types[0]).read());
}

DFLOW_INLINE void detail::AssignKernel::operator()(KernelContext& context) const {
  VariableState& state = variable_input(context, 0, context.node().types[0]);
  const AnyTensor& value = context.input(1);
  if (attrs.validate_shape && !state.shape().is_compatible_with(value.shape())) {
    context.fail(str_cat(state.debug_string(), " cannot be assigned a value of shape ", value.shape().to_string()));
  }
  // The giver may write to a tensor that others hold (a fed one): the variable takes only what is its alone.
  state.assign(context.owns_input(1) ? value : value.deep_copy(*context.device().allocator));
}

DFLOW_INLINE void detail::require_same_shape(const KernelContext& context, const AnyTensor& variable,
                                             const AnyTensor& value, const char* what) {
  if (variable.shape() == value.shape()) return;
  context.fail(
      str_cat("the ", what, " has shape ", value.shape().to_string(), ", the variable ", variable.shape().to_string()));
}

DFLOW_INLINE std::int64_t detail::checked_row_size(const KernelContext& context, const AnyTensor& variable,
                                                   const AnyTensor& indices, const AnyTensor& updates) {
  if (variable.rank() == 0) context.fail("the variable is a scalar and has no rows");
  const Shape row = variable.shape().subshape(1, variable.rank());
  if (updates.shape() != indices.shape().concatenated(row)) {
    context.fail(str_cat("updates of shape ", updates.shape().to_string(), " do not fit indices ",
                         indices.shape().to_string(), " and a variable ", variable.shape().to_string()));
  }
  return row.num_elements();
}

DFLOW_INLINE void detail::fail_bad_index(const KernelContext& context, std::int64_t position, std::int64_t index,
                                         std::int64_t limit) {
  context.fail(str_cat("indices[", position, "] = ", index, " is outside [0, ", limit, ")"));
}

}  // namespace dflow
