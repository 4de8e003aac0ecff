#pragma once

#include <dflow/kernels/cpu/state/variable.hpp>

#include <string>
#include <utility>

namespace dflow {

namespace detail {
inline const std::string& kept_name(const Node& node) {
  const std::string& shared = node.attrs_as<VariableOp>().shared_name;
  return shared.empty() ? node.name : shared;
}
}  // namespace detail

DFLOW_INLINE detail::VariableKernel::VariableKernel(const KernelInit& init)
    : name_(kept_name(init.node)),
      dtype_(init.node.types[0]),
      shape_(init.node.attrs_as<VariableOp>().shape),
      handle_(container_of(init, init.node.attrs_as<VariableOp>().container)) {
  static_cast<void>(handle());
}

DFLOW_INLINE AnyTensor detail::VariableKernel::find(ResourceContainer& container) const {
  const auto state = container.lookup_or_create<VariableState>(
      name_, [this] { return std::make_shared<VariableState>(name_, dtype_, shape_); });
  if (state->dtype() != dtype_ || !state->shape().is_compatible_with(shape_)) {
    throw_error(invalid_argument(str_cat("container '", container.name(), "' keeps ", state->debug_string(),
                                         ", wanted ", dflow::name(dtype_), shape_.to_string())));
  }
  return make_resource_handle(state);
}

DFLOW_INLINE VariableState& detail::variable_input(const KernelContext& context, int i, DType dtype) {
  VariableState& state = context.resource<VariableState>(i);
  if (state.dtype() != dtype) {
    context.fail(str_cat(state.debug_string(), " does not hold elements of type ", dflow::name(dtype)));
  }
  return state;
}

DFLOW_INLINE void detail::ReadVariableKernel::operator()(KernelContext& context) const {
  context.set_output(0, variable_input(context, 0, context.node().types[0]).read(context.node().outputs[0].shape));
}

DFLOW_INLINE void detail::AssignKernel::operator()(KernelContext& context) const {
  VariableState& state = variable_input(context, 0, context.node().types[0]);
  const AnyTensor& value = context.input(1);
  // The giver may write to a tensor that others hold (a fed one): the variable takes only what is its alone.
  AnyTensor own = context.owns_input(1) ? value : value.deep_copy(*context.device().allocator);
  attrs.validate_shape ? state.assign(std::move(own)) : state.assign_any_shape(std::move(own));
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
