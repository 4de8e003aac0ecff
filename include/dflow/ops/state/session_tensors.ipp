#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/state/session_tensors.hpp>

namespace dflow {

void SessionTensorsOp::infer(InferContext& context) {
  const std::int64_t limit = context.attrs<SessionTensorsOp>().memory_limit;
  if (limit < 0) context.fail(str_cat("memory limit ", limit, " must not be negative"));
  context.set_output(0, Shape{});
}
void GetSessionHandle::infer(InferContext& context) { context.set_output(0, Shape{}); }
void GetSessionTensor::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, context.attrs<GetSessionTensor>().shape);
}
void DeleteSessionTensor::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }

namespace detail {

AnySessionTensors::AnySessionTensors(GraphStore& graph, DType dtype, const SessionTensorsOptions& options, const At& at)
    : dtype_(dtype) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  handle_ =
      build<SessionTensorsOp>(graph, {},
                              {.memory_limit = options.memory_limit,
                               .container = std::string(options.container),
                               .shared_name = std::string(options.shared_name)},
                              {.name = at.name.empty() ? options.name : at.name, .where = at.where}, one_type(dtype));
}

AnyOutput AnySessionTensors::keep(const AnyOutput& value, const At& at) const {
  return build_on<GetSessionHandle>({handle_, value}, {}, at, one_type(dtype_));
}
AnyOutput AnySessionTensors::get(const AnyOutput& number, const PartialShape& shape, const At& at) const {
  return build_on<GetSessionTensor>({handle_, number}, {.shape = shape}, at, one_type(dtype_));
}
Operation AnySessionTensors::remove(const AnyOutput& number, const At& at) const {
  return build_on<DeleteSessionTensor>({handle_, number}, {}, at);
}

}  // namespace detail

}  // namespace dflow
