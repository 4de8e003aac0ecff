#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/reduction/top_k.hpp>

namespace dflow {

namespace cpu {
/// The kernel of TopKV2.
void top_k(KernelContext& context, bool sorted);
/// The kernel of InTopK.
void in_top_k(KernelContext& context, std::int64_t k);
}  // namespace cpu

template <>
struct Kernel<TopKV2, Cpu> {
  TopKV2::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const { cpu::top_k(context, attrs.sorted); }
};

template <>
struct Kernel<InTopK, Cpu> {
  InTopK::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const { cpu::in_top_k(context, attrs.k); }
};

}  // namespace dflow
