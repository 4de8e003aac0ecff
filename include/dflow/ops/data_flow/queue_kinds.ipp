#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/data_flow/queue.ipp>
#include <dflow/ops/data_flow/queue_kinds.hpp>

#include <cstddef>

namespace dflow {

void PaddingFIFOQueueV2::infer(InferContext& context) {
  const auto& attrs = context.attrs<PaddingFIFOQueueV2>();
  if (attrs.component_types.empty()) context.fail("an element has no components");
  if (attrs.shapes.size() != attrs.component_types.size()) {
    context.fail(str_cat(attrs.shapes.size(), " shapes for ", attrs.component_types.size(), " components"));
  }
  for (std::size_t i = 0; i < attrs.shapes.size(); ++i) {
    if (!attrs.shapes[i].has_rank()) context.fail(str_cat("the rank of component ", i, " is not known"));
  }
  detail::infer_queue(context, attrs.component_types, attrs.shapes, attrs.capacity);
}

void RandomShuffleQueueV2::infer(InferContext& context) {
  const auto& attrs = context.attrs<RandomShuffleQueueV2>();
  if (attrs.component_types.empty()) context.fail("an element has no components");
  if (attrs.min_after_dequeue < 0) context.fail(str_cat("min_after_dequeue is ", attrs.min_after_dequeue));
  if (attrs.capacity > 0 && attrs.min_after_dequeue >= attrs.capacity) {
    context.fail(str_cat("of a queue of capacity ", attrs.capacity, " that keeps ", attrs.min_after_dequeue,
                         " nothing can be taken"));
  }
  detail::infer_queue(context, attrs.component_types, attrs.shapes, attrs.capacity);
}

void PriorityQueueV2::infer(InferContext& context) {
  const auto& attrs = context.attrs<PriorityQueueV2>();
  detail::infer_queue(context, attrs.component_types, attrs.shapes, attrs.capacity);
}

namespace detail {

AnyQueue padding_fifo_queue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  const AnyOutput handle =
      build<PaddingFIFOQueueV2>(graph, {},
                                {.component_types = dtypes,
                                 .shapes = options.shapes,
                                 .capacity = options.capacity == 0 ? -1 : options.capacity,
                                 .container = std::string(options.container),
                                 .shared_name = std::string(options.shared_name)},
                                {.name = at.name.empty() ? options.name : at.name, .where = at.where});
  return {handle, std::move(dtypes), options.shapes};
}

AnyQueue random_shuffle_queue(GraphStore& graph, std::vector<DType> dtypes, const RandomShuffleQueueOptions& options,
                              const At& at) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  const AnyOutput handle =
      build<RandomShuffleQueueV2>(graph, {},
                                  {.component_types = dtypes,
                                   .shapes = options.shapes,
                                   .capacity = options.capacity == 0 ? -1 : options.capacity,
                                   .min_after_dequeue = options.min_after_dequeue,
                                   .seed = static_cast<std::int64_t>(next_op_seed(graph, options.seed)),
                                   .container = std::string(options.container),
                                   .shared_name = std::string(options.shared_name)},
                                  {.name = at.name.empty() ? options.name : at.name, .where = at.where});
  return {handle, std::move(dtypes), options.shapes};
}

AnyQueue priority_queue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  const AnyOutput handle =
      build<PriorityQueueV2>(graph, {},
                             {.component_types = dtypes,
                              .shapes = options.shapes,
                              .capacity = options.capacity == 0 ? -1 : options.capacity,
                              .container = std::string(options.container),
                              .shared_name = std::string(options.shared_name)},
                             {.name = at.name.empty() ? options.name : at.name, .where = at.where});
  std::vector<PartialShape> shapes{PartialShape(Shape{})};
  shapes.insert(shapes.end(), options.shapes.begin(), options.shapes.end());
  shapes.resize(dtypes.size() + 1, PartialShape::unknown());
  dtypes.insert(dtypes.begin(), DType::int64);
  return {handle, std::move(dtypes), std::move(shapes)};
}

}  // namespace detail

}  // namespace dflow
