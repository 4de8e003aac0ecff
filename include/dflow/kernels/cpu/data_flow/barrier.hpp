#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/state/barrier_state.hpp>

#include <memory>
#include <string>

namespace dflow {

template <>
struct Kernel<BarrierOp, Cpu> : detail::HandleKernel<Kernel<BarrierOp, Cpu>, BarrierOp, BarrierState> {
  explicit Kernel(const KernelInit& init) : HandleKernel(init) {
    const auto& attrs = init.node.attrs_as<BarrierOp>();
    kind = {attrs.component_types, attrs.shapes};
  }
  std::shared_ptr<BarrierState> make(const std::string& name) const {
    return std::make_shared<BarrierState>(name, kind);
  }
  bool is_same_kind(const BarrierState& state) const { return state.kind() == kind; }

  BarrierState::Kind kind;
};

template <>
struct Kernel<BarrierInsertMany, Cpu> {
  static constexpr bool splits = false;
  BarrierInsertMany::Attrs attrs;
  void operator()(KernelContext& context) const {
    context.resource<BarrierState>(0).insert_many(attrs.component_index, context.input<std::string>(1).span(),
                                                  context.input(2));
  }
};
template <>
struct Kernel<BarrierTakeMany, Cpu> {
  BarrierTakeMany::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<BarrierClose, Cpu> {
  static constexpr bool splits = false;
  BarrierClose::Attrs attrs;
  void operator()(KernelContext& context) const {
    context.resource<BarrierState>(0).close(attrs.cancel_pending_enqueues);
  }
};
template <>
struct Kernel<BarrierReadySize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int32_t>(0, {}).data() =
        static_cast<std::int32_t>(context.resource<BarrierState>(0).ready_size());
  }
};
template <>
struct Kernel<BarrierIncompleteSize, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    *context.allocate_output<std::int32_t>(0, {}).data() =
        static_cast<std::int32_t>(context.resource<BarrierState>(0).incomplete_size());
  }
};

}  // namespace dflow
