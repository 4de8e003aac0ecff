#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/token_barrier.hpp>
#include <dflow/state/token_barrier_state.hpp>

#include <memory>
#include <string>

namespace dflow {

template <>
struct Kernel<TokenBarrier, Cpu> : detail::HandleKernel<Kernel<TokenBarrier, Cpu>, TokenBarrier, TokenBarrierState> {
  explicit Kernel(const KernelInit& init) : HandleKernel(init), attrs(init.node.attrs_as<TokenBarrier>()) {}
  std::shared_ptr<TokenBarrierState> make(const std::string& name) const {
    return std::make_shared<TokenBarrierState>(name, attrs.replicas, attrs.aggregate);
  }
  bool is_same_kind(const TokenBarrierState& state) const {
    return state.replicas() == attrs.replicas && state.aggregate() == attrs.aggregate;
  }

  TokenBarrier::Attrs attrs;
};

template <>
struct Kernel<TokenBarrierOpen, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<TokenBarrierArrive, Cpu> {
  static constexpr bool splits = false;
  TokenBarrierRankAttrs attrs;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<TokenBarrierWait, Cpu> {
  TokenBarrierRankAttrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<TokenBarrierCollect, Cpu> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<TokenBarrierAdvance, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<TokenBarrierLeave, Cpu> {
  TokenBarrierLeave::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<TokenBarrierDropMissing, Cpu> {
  static constexpr bool splits = false;
  TokenBarrierDropMissing::Attrs attrs;
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<TokenBarrierHold, Cpu> {
  TokenBarrierHold::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const;
};
template <>
struct Kernel<TokenBarrierClose, Cpu> {
  static constexpr bool splits = false;
  TokenBarrierClose::Attrs attrs;
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
