#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/ops/data_flow/queue.ipp>

#include <cstddef>

namespace dflow {

void BarrierOp::infer(InferContext& context) {
  const auto& attrs = context.attrs<BarrierOp>();
  if (attrs.component_types.empty()) context.fail("an element has no components");
  detail::infer_queue(context, attrs.component_types, attrs.shapes, -1);
}
void BarrierInsertMany::infer(InferContext& context) {
  const std::int64_t component = context.attrs<BarrierInsertMany>().component_index;
  if (component < 0) context.fail(str_cat("there is no component ", component));
  const PartialShape keys = context.with_rank(1, 1), values = context.with_rank_at_least(2, 1);
  if (values.has_rank()) static_cast<void>(context.merge_dim(keys.dim(0), values.dim(0)));
}
void BarrierTakeMany::infer(InferContext& context) {
  const auto& attrs = context.attrs<BarrierTakeMany>();
  if (!attrs.shapes.empty() && attrs.shapes.size() != attrs.component_types.size()) {
    context.fail(str_cat(attrs.shapes.size(), " shapes for ", attrs.component_types.size(), " components"));
  }
  const PartialShape rows = detail::dequeued_rows(context, attrs.allow_small_batch);
  context.set_output(0, rows);
  context.set_output(1, rows);
  for (std::size_t i = 0; i < attrs.component_types.size(); ++i) {
    const PartialShape element = attrs.shapes.empty() ? PartialShape::unknown() : attrs.shapes[i];
    context.set_output(static_cast<int>(i) + 2, rows.concatenated(element));
  }
}
void BarrierClose::infer(InferContext&) {}
void BarrierReadySize::infer(InferContext& context) { context.set_output(0, Shape{}); }
void BarrierIncompleteSize::infer(InferContext& context) { context.set_output(0, Shape{}); }

namespace detail {

AnyBarrier::AnyBarrier(GraphStore& graph, std::vector<DType> dtypes, const BarrierOptions& options, const At& at)
    : dtypes_(std::move(dtypes)), shapes_(options.shapes) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  handle_ = build<BarrierOp>(graph, {},
                             {.component_types = dtypes_,
                              .shapes = shapes_,
                              .container = std::string(options.container),
                              .shared_name = std::string(options.shared_name)},
                             {.name = at.name.empty() ? options.name : at.name, .where = at.where});
}

Operation AnyBarrier::insert_many(std::size_t component, const AnyOutput& keys, const AnyOutput& values,
                                  const At& at) const {
  const ScopeGuard with = enter_beside(handle_, BarrierInsertMany::name, at);
  if (values.is_valid() && component < shapes_.size()) {
    const PartialShape& shape = values.shape();
    const PartialShape element =
        shape.has_rank() && shape.rank() > 0 ? shape.subshape(1, shape.rank()) : PartialShape::unknown();
    if (!shapes_[component].is_compatible_with(element)) {
      throw_error(Status::invalid_argument(str_cat("component ", component, " of the barrier has shape ",
                                                   shapes_[component].to_string(), ", not ", element.to_string()))
                      .with_node(BarrierInsertMany::name, at.name)
                      .with_location(at.where));
    }
  }
  return build<BarrierInsertMany>({handle_, keys, values}, {.component_index = static_cast<std::int64_t>(component)},
                                  at);
}

BuiltNode AnyBarrier::take_many(const AnyOutput& count, const BarrierTakeOptions& options, const At& at) const {
  return build_on<BarrierTakeMany>({handle_, count},
                                   {.component_types = dtypes_,
                                    .shapes = shapes_,
                                    .allow_small_batch = options.allow_small_batch,
                                    .wait_for_incomplete = options.wait_for_incomplete},
                                   at);
}

Operation AnyBarrier::close(bool cancel_pending_enqueues, const At& at) const {
  return build_on<BarrierClose>({handle_}, {.cancel_pending_enqueues = cancel_pending_enqueues}, at);
}
AnyOutput AnyBarrier::ready_size(const At& at) const { return build_on<BarrierReadySize>({handle_}, {}, at); }
AnyOutput AnyBarrier::incomplete_size(const At& at) const { return build_on<BarrierIncompleteSize>({handle_}, {}, at); }

}  // namespace detail

}  // namespace dflow
