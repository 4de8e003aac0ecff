#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/state/temporary_variable.hpp>

namespace dflow {

void TemporaryVariableOp::infer(InferContext& context) {
  context.set_output(0, context.attrs<TemporaryVariableOp>().shape);
}
void DestroyTemporaryVariable::infer(InferContext& context) { context.set_output(0, context.input(0)); }

namespace detail {

AnyOutput make_temporary_variable(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at) {
  return build<TemporaryVariableOp>(graph, {}, {.shape = shape}, at, one_type(dtype));
}
Operation assign_temporary(const AnyOutput& handle, const AnyOutput& value, const At& at) {
  return build_on<Assign>({handle, value}, {}, at, one_type(value.dtype()));
}
Operation add_to_temporary(const AnyOutput& handle, const AnyOutput& delta, const At& at) {
  return build_on<AssignAdd>({handle, delta}, {}, at, one_type(delta.dtype()));
}
Operation subtract_from_temporary(const AnyOutput& handle, const AnyOutput& delta, const At& at) {
  return build_on<AssignSub>({handle, delta}, {}, at, one_type(delta.dtype()));
}
AnyOutput destroy_temporary(const AnyOutput& handle, DType dtype, const At& at) {
  return build_on<DestroyTemporaryVariable>({handle}, {}, at, one_type(dtype));
}

}  // namespace detail

}  // namespace dflow
