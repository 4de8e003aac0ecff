#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/variable_kernel.hpp>

#include <memory>
#include <string>
#include <utility>

namespace dflow::detail {

inline const std::string& kept_name(const Node& node) {
  const std::string& shared = node.attrs_as<VariableOp>().shared_name;
  return shared.empty() ? node.name : shared;
}

VariableKernel::VariableKernel(const KernelInit& init)
    : name_(kept_name(init.node)),
      dtype_(init.node.types[0]),
      shape_(init.node.attrs_as<VariableOp>().shape),
      handle_(container_of(init, init.node.attrs_as<VariableOp>().container)) {
  static_cast<void>(handle());
}

AnyTensor VariableKernel::find(ResourceContainer& container) const {
  const auto state = container.lookup_or_create<VariableState>(
      name_, [this] { return std::make_shared<VariableState>(name_, dtype_, shape_); });
  if (state->dtype() != dtype_ || !state->shape().is_compatible_with(shape_)) {
    throw_error(Status::invalid_argument(str_cat("container '", container.name(), "' keeps ", state->debug_string(),
                                                 ", wanted ", dtype_name(dtype_), shape_.to_string())));
  }
  return make_resource_handle(state);
}

VariableState& variable_input(const KernelContext& context, int i, DType dtype) {
  VariableState& state = context.resource<VariableState>(i);
  if (state.dtype() != dtype) {
    context.fail(str_cat(state.debug_string(), " does not hold elements of type ", dtype_name(dtype)));
  }
  return state;
}

void ReadVariableKernel::operator()(KernelContext& context) const {
  context.set_output(0, variable_input(context, 0, context.node().types[0]).read(context.node().outputs[0].shape));
}

void IsVariableInitializedKernel::operator()(KernelContext& context) const {
  *context.allocate_output<bool>(0, {}).data() = context.resource<VariableState>(0).is_initialized();
}

void TemporaryVariableKernel::operator()(KernelContext& context) const {
  const Node& node = context.node();
  const StepContext& step = context.step();
  const std::string name = str_cat(node.name, ";", step.frame, ";", step.iteration);
  context.set_output(0, make_resource_handle(step.resources->container().lookup_or_create<VariableState>(name, [&] {
                       return std::make_shared<VariableState>(name, node.types[0],
                                                              node.attrs_as<TemporaryVariableOp>().shape);
                     })));
}

void DestroyTemporaryVariableKernel::operator()(KernelContext& context) const {
  const VariableState& variable = variable_input(context, 0, context.node().types[0]);
  context.set_output(0, variable.read(context.node().outputs[0].shape));
  context.step().resources->container().remove(variable.name());
}

void assign_variable(const KernelContext& context, const Assign::Attrs& attrs, CopyTensor copy) {
  VariableState& state = variable_input(context, 0, context.node().types[0]);
  const AnyTensor& value = context.input(1);
  // The owner may write to a tensor that others hold (a fed tensor): the variable takes only a tensor that nobody
  // else holds.
  AnyTensor own = context.owns_input(1) ? value : copy(value);
  attrs.validate_shape ? state.assign(std::move(own)) : state.assign_any_shape(std::move(own));
}

void require_same_shape(const KernelContext& context, const AnyTensor& variable, const AnyTensor& value,
                        const char* what) {
  if (variable.shape() == value.shape()) return;
  context.fail(
      str_cat("the ", what, " has shape ", value.shape().to_string(), ", the variable ", variable.shape().to_string()));
}

void require_scalar(const KernelContext& context, int i) {
  const Shape& shape = context.input(i).shape();
  if (shape.rank() != 0) context.fail(str_cat("input ", i, " must be a scalar, got shape ", shape.to_string()));
}

}  // namespace dflow::detail
