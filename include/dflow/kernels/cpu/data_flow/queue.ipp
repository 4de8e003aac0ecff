#pragma once

#include <dflow/kernels/cpu/data_flow/queue.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

QueueState::Kind detail::queue_kind(const FIFOQueue::Attrs& attrs) {
  return {.dtypes = attrs.component_types, .shapes = attrs.shapes, .capacity = attrs.capacity};
}
QueueState::Kind detail::queue_kind(const PaddingFIFOQueueV2::Attrs& attrs) {
  return {.dtypes = attrs.component_types,
          .shapes = attrs.shapes,
          .capacity = attrs.capacity,
          .kind = QueueKind::padding_fifo};
}
QueueState::Kind detail::queue_kind(const RandomShuffleQueueV2::Attrs& attrs) {
  return {.dtypes = attrs.component_types,
          .shapes = attrs.shapes,
          .capacity = attrs.capacity,
          .kind = QueueKind::random_shuffle,
          .min_after_dequeue = attrs.min_after_dequeue,
          .seed = attrs.seed,
          .seed2 = attrs.seed2};
}
QueueState::Kind detail::queue_kind(const PriorityQueueV2::Attrs& attrs) {
  QueueState::Kind kind{.dtypes = {DType::int64},
                        .shapes = {PartialShape(Shape{})},
                        .capacity = attrs.capacity,
                        .kind = QueueKind::priority};
  kind.dtypes.insert(kind.dtypes.end(), attrs.component_types.begin(), attrs.component_types.end());
  kind.shapes.insert(kind.shapes.end(), attrs.shapes.begin(), attrs.shapes.end());
  kind.shapes.resize(kind.dtypes.size(), PartialShape::unknown());
  return kind;
}
std::shared_ptr<QueueState> detail::make_queue(const std::string& name, const QueueState::Kind& kind,
                                               const DeviceContext& device) {
  RandomStreamState random{static_cast<std::uint64_t>(kind.seed), static_cast<std::uint64_t>(kind.seed2), 0};
  if (kind.kind == QueueKind::random_shuffle && kind.seed == 0 && kind.seed2 == 0) {
    random = {device.draw_seed(), device.draw_seed(), 0};
  }
  return std::make_shared<QueueState>(name, kind, random);
}

void detail::enqueue_inputs(KernelContext& context, bool is_single, AsyncKernel::Done done) {
  QueueState& queue = context.resource<QueueState>(0);
  QueuedElements elements;
  elements.is_single = is_single;
  elements.components.reserve(static_cast<std::size_t>(context.num_inputs()) - 1);
  for (int i = 1; i < context.num_inputs(); ++i) {
    // The giver may write to a tensor that others hold (a fed one): the queue keeps only tensors that it alone owns.
    const AnyTensor& input = context.input(i);
    elements.components.push_back(context.owns_input(i) ? input : input.deep_copy(*context.device().allocator));
  }
  if (!is_single) elements.end = context.input(1).rank() == 0 ? 0 : context.input(1).dim(0);
  queue.enqueue_async(std::move(elements), context.step().cancellation, std::move(done));
}

void detail::dequeue_outputs(KernelContext& context, const QueueDequeueAttrs& attrs, std::int64_t count, bool is_single,
                             bool up_to, AsyncKernel::Done done) {
  QueueState& queue = context.resource<QueueState>(0);
  if (queue.kind().dtypes != attrs.component_types) {
    context.fail(str_cat(queue.debug_string(), " has other components than are taken out"));
  }
  queue.dequeue_async(
      count, up_to, context.step().cancellation,
      [&context, &queue, is_single, done = std::move(done)](Status status, std::vector<QueuedElements> parts) mutable {
        try {
          for (int i = 0; status.ok() && i < context.num_outputs(); ++i) {
            context.set_output(i, join_elements(parts, static_cast<std::size_t>(i), queue.kind(), is_single,
                                                *context.device().allocator));
          }
        } catch (...) {
          status = status_of_current_exception();
          queue.give_back(std::move(parts));
        }
        done(std::move(status));
      });
}

}  // namespace dflow
