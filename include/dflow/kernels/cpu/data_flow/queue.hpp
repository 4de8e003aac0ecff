#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/state/queue_state.hpp>

#include <memory>
#include <string>

namespace dflow {

namespace detail {

QueueState::Kind queue_kind(const FIFOQueue::Attrs& attrs);
QueueState::Kind queue_kind(const PaddingFIFOQueueV2::Attrs& attrs);
QueueState::Kind queue_kind(const RandomShuffleQueueV2::Attrs& attrs);
QueueState::Kind queue_kind(const PriorityQueueV2::Attrs& attrs);
/// Uses the kind's seeds; if both are 0, the device draws seeds.
std::shared_ptr<QueueState> make_queue(const std::string& name, const QueueState::Kind& kind,
                                       const DeviceContext& device);

template <class O>
struct QueueKernel : HandleKernel<QueueKernel<O>, O, QueueState> {
  explicit QueueKernel(const KernelInit& init)
      : HandleKernel<QueueKernel, O, QueueState>(init),
        kind(queue_kind(init.node.attrs_as<O>())),
        device(init.device) {}
  std::shared_ptr<QueueState> make(const std::string& name) const { return make_queue(name, kind, device); }
  bool is_same_kind(const QueueState& state) const { return state.kind() == kind; }

  const QueueState::Kind kind;
  const DeviceContext& device;
};

void enqueue_inputs(KernelContext& context, bool is_single, AsyncKernel::Done done);
void dequeue_outputs(KernelContext& context, const QueueDequeueAttrs& attrs, std::int64_t count, bool is_single,
                     bool up_to, AsyncKernel::Done done);

}  // namespace detail

template <>
struct Kernel<FIFOQueue, Cpu> : detail::QueueKernel<FIFOQueue> {
  using QueueKernel::QueueKernel;
};
template <>
struct Kernel<PaddingFIFOQueueV2, Cpu> : detail::QueueKernel<PaddingFIFOQueueV2> {
  using QueueKernel::QueueKernel;
};
template <>
struct Kernel<RandomShuffleQueueV2, Cpu> : detail::QueueKernel<RandomShuffleQueueV2> {
  using QueueKernel::QueueKernel;
};
template <>
struct Kernel<PriorityQueueV2, Cpu> : detail::QueueKernel<PriorityQueueV2> {
  using QueueKernel::QueueKernel;
};
template <>
struct Kernel<QueueEnqueue, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::enqueue_inputs(context, true, std::move(done));
  }
};
template <>
struct Kernel<QueueEnqueueMany, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::enqueue_inputs(context, false, std::move(done));
  }
};
template <>
struct Kernel<QueueDequeue, Cpu> {
  QueueDequeueAttrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::dequeue_outputs(context, attrs, 1, true, false, std::move(done));
  }
};
template <>
struct Kernel<QueueDequeueMany, Cpu> {
  QueueDequeueAttrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::dequeue_outputs(context, attrs, context.scalar_input<std::int32_t>(1), false, false, std::move(done));
  }
};
template <>
struct Kernel<QueueDequeueUpTo, Cpu> {
  QueueDequeueAttrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::dequeue_outputs(context, attrs, context.scalar_input<std::int32_t>(1), false, true, std::move(done));
  }
};
template <>
struct Kernel<QueueClose, Cpu> {
  static constexpr bool splits = false;
  QueueClose::Attrs attrs;
  void operator()(KernelContext& context) const {
    context.resource<QueueState>(0).close(attrs.cancel_pending_enqueues);
  }
};
template <>
struct Kernel<QueueIsClosed, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<bool>(0, {}).data() = context.resource<QueueState>(0).is_closed();
  }
};
template <>
struct Kernel<QueueSize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int32_t>(0, {}).data() =
        static_cast<std::int32_t>(context.resource<QueueState>(0).size());
  }
};

}  // namespace dflow
