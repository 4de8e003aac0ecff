#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/data_flow/queue.hpp>

#include <cstddef>

namespace dflow {

namespace detail {

/// Outputs of an op that takes elements out: [shape...], or [n, shape...] with `rows` for n.
void infer_dequeue(InferContext& context, const QueueDequeueAttrs& attrs, const std::optional<PartialShape>& rows) {
  if (!attrs.shapes.empty() && attrs.shapes.size() != attrs.component_types.size()) {
    context.fail(str_cat(attrs.shapes.size(), " shapes for ", attrs.component_types.size(), " components"));
  }
  for (int i = 0; i < context.num_outputs(); ++i) {
    const PartialShape element =
        attrs.shapes.empty() ? PartialShape::unknown() : attrs.shapes[static_cast<std::size_t>(i)];
    context.set_output(i, rows ? rows->concatenated(element) : element);
  }
}

PartialShape dequeued_rows(InferContext& context, bool up_to) {
  static_cast<void>(context.with_rank(1, 0));
  const auto n = context.value_as_integers(1);
  if (!n || up_to) return PartialShape{dynamic};
  if ((*n)[0] < 0) context.fail(str_cat("cannot take ", (*n)[0], " elements"));
  return PartialShape{(*n)[0]};
}

}  // namespace detail

void detail::infer_queue(InferContext& context, std::span<const DType> dtypes, std::span<const PartialShape> shapes,
                         std::int64_t capacity) {
  if (!shapes.empty() && shapes.size() != dtypes.size()) {
    context.fail(str_cat(shapes.size(), " shapes for ", dtypes.size(), " components"));
  }
  if (capacity == 0) context.fail("a queue of capacity 0 holds nothing");
  context.set_output(0, Shape{});
}

void FIFOQueue::infer(InferContext& context) {
  const auto& attrs = context.attrs<FIFOQueue>();
  if (attrs.component_types.empty()) context.fail("an element has no components");
  detail::infer_queue(context, attrs.component_types, attrs.shapes, attrs.capacity);
}
void QueueEnqueue::infer(InferContext&) {}
void QueueEnqueueMany::infer(InferContext& context) {
  if (context.num_inputs() < 2) context.fail("an element has no components");
  std::int64_t rows = dynamic;
  for (int i = 1; i < context.num_inputs(); ++i) {
    const PartialShape shape = context.with_rank_at_least(i, 1);
    if (shape.has_rank()) rows = context.merge_dim(rows, shape.dim(0));
  }
}
void QueueDequeue::infer(InferContext& context) {
  detail::infer_dequeue(context, context.attrs<QueueDequeue>(), std::nullopt);
}
void QueueDequeueMany::infer(InferContext& context) {
  detail::infer_dequeue(context, context.attrs<QueueDequeueMany>(), detail::dequeued_rows(context, false));
}
void QueueDequeueUpTo::infer(InferContext& context) {
  detail::infer_dequeue(context, context.attrs<QueueDequeueUpTo>(), detail::dequeued_rows(context, true));
}
void QueueClose::infer(InferContext&) {}
void QueueIsClosed::infer(InferContext& context) { context.set_output(0, Shape{}); }
void QueueSize::infer(InferContext& context) { context.set_output(0, Shape{}); }

namespace detail {

void check_components(std::span<const AnyOutput> components, std::span<const PartialShape> shapes, bool many,
                      std::string_view op, const At& at) {
  const auto element_shape = [&](std::size_t i) {
    const PartialShape& shape = components[i].shape();
    return many && shape.has_rank() && shape.rank() > 0 ? shape.subshape(1, shape.rank())
           : many                                       ? PartialShape::unknown()
                                                        : shape;
  };
  for (std::size_t i = 0; i < components.size() && i < shapes.size(); ++i) {
    if (!components[i].is_valid() || shapes[i].is_compatible_with(element_shape(i))) continue;
    throw_error(Status::invalid_argument(str_cat("component ", i, " of the queue has shape ", shapes[i].to_string(),
                                                 ", not ", element_shape(i).to_string()))
                    .with_node(op, at.name)
                    .with_location(at.where));
  }
}

AnyQueue::AnyQueue(AnyOutput handle, std::vector<DType> dtypes, std::vector<PartialShape> shapes)
    : handle_(handle), dtypes_(std::move(dtypes)), shapes_(std::move(shapes)) {}

AnyQueue::AnyQueue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at)
    : dtypes_(std::move(dtypes)), shapes_(options.shapes) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  handle_ = build<FIFOQueue>(graph, {},
                             {.component_types = dtypes_,
                              .shapes = shapes_,
                              .capacity = options.capacity == 0 ? -1 : options.capacity,
                              .container = std::string(options.container),
                              .shared_name = std::string(options.shared_name)},
                             {.name = at.name.empty() ? options.name : at.name, .where = at.where});
}

Operation AnyQueue::enqueue(std::span<const AnyOutput> components, bool many, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, QueueEnqueue::name, at);
  check_components(components, shapes_, many, many ? QueueEnqueueMany::name : QueueEnqueue::name, at);
  std::vector<AnyOutput> inputs{handle_};
  inputs.insert(inputs.end(), components.begin(), components.end());
  if (many) return build<QueueEnqueueMany>(std::span<const AnyOutput>(inputs), {.Tcomponents = dtypes_}, at);
  return build<QueueEnqueue>(std::span<const AnyOutput>(inputs), {.Tcomponents = dtypes_}, at);
}

BuiltNode AnyQueue::dequeue(const AnyOutput& count, bool up_to, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, QueueDequeue::name, at);
  const QueueDequeueAttrs attrs{dtypes_, shapes_};
  if (!count.is_valid()) return build<QueueDequeue>({handle_}, attrs, at);
  if (up_to) return build<QueueDequeueUpTo>({handle_, count}, attrs, at);
  return build<QueueDequeueMany>({handle_, count}, attrs, at);
}

Operation AnyQueue::close(bool cancel_pending_enqueues, const At& at) const {
  return build_on<QueueClose>({handle_}, {.cancel_pending_enqueues = cancel_pending_enqueues}, at);
}
AnyOutput AnyQueue::size(const At& at) const { return build_on<QueueSize>({handle_}, {}, at); }
AnyOutput AnyQueue::is_closed(const At& at) const { return build_on<QueueIsClosed>({handle_}, {}, at); }

}  // namespace detail

}  // namespace dflow
