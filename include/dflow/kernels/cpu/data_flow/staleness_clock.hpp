#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/staleness_clock.hpp>
#include <dflow/state/staleness_clock_state.hpp>

#include <memory>
#include <string>

namespace dflow {

template <>
struct Kernel<StalenessClock, Cpu>
    : detail::HandleKernel<Kernel<StalenessClock, Cpu>, StalenessClock, StalenessClockState> {
  explicit Kernel(const KernelInit& init) : HandleKernel(init), attrs(init.node.attrs_as<StalenessClock>()) {}
  std::shared_ptr<StalenessClockState> make(const std::string& name) const {
    return std::make_shared<StalenessClockState>(name, attrs.replicas, attrs.staleness);
  }
  bool is_same_kind(const StalenessClockState& state) const {
    return state.replicas() == attrs.replicas && state.staleness() == attrs.staleness;
  }

  StalenessClock::Attrs attrs;
};

template <>
struct Kernel<StalenessClockJoin, Cpu> {
  StalenessClockJoin::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<StalenessClockLead, Cpu> {
  StalenessClockRankAttrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<StalenessClockWait, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<StalenessClockTick, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<StalenessClockLeave, Cpu> {
  StalenessClockLeave::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<StalenessClockWatch, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<StalenessClockDropLate, Cpu> {
  static constexpr bool splits = false;
  StalenessClockDropLate::Attrs attrs;
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
