#pragma once

#include <dflow/kernels/cpu/data_flow/queue.hpp>
#include <dflow/ops/data_flow/staging.hpp>

namespace dflow {

template <>
struct Kernel<StagingAreaOp, Cpu> : detail::HandleKernel<Kernel<StagingAreaOp, Cpu>, StagingAreaOp, QueueState> {
  explicit Kernel(const KernelInit& init) : HandleKernel(init) {
    const auto& attrs = init.node.attrs_as<StagingAreaOp>();
    kind.dtypes = attrs.dtypes;
    kind.shapes = attrs.shapes;
    kind.capacity = attrs.capacity == 0 ? -1 : attrs.capacity;
    kind.kind = QueueKind::staging;
    kind.memory_limit = attrs.memory_limit == 0 ? -1 : attrs.memory_limit;
  }
  std::shared_ptr<QueueState> make(const std::string& name) const { return std::make_shared<QueueState>(name, kind); }
  bool is_same_kind(const QueueState& state) const { return state.kind() == kind; }

  QueueState::Kind kind;
};

template <>
struct Kernel<Stage, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::enqueue_inputs(context, true, std::move(done));
  }
};
template <>
struct Kernel<Unstage, Cpu> {
  Unstage::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::dequeue_outputs(context, {attrs.dtypes, attrs.shapes}, 1, true, false, std::move(done));
  }
};
template <>
struct Kernel<StageSize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int32_t>(0, {}).data() =
        static_cast<std::int32_t>(context.resource<QueueState>(0).size());
  }
};
template <>
struct Kernel<StageClear, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const { context.resource<QueueState>(0).clear(); }
};

}  // namespace dflow
