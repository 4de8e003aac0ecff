#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/unique.hpp>

namespace dflow {

namespace cpu {

/// The kernel of Unique, and of UniqueWithCounts, which has a third output.
void find_unique(KernelContext& context);
/// The kernel of ListDiff.
void find_difference(KernelContext& context);

/// Elements are looked up one after the other.
struct LookupOfElements {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 20; }
};

}  // namespace cpu

template <>
struct Kernel<Unique, Cpu> : cpu::LookupOfElements {
  void operator()(KernelContext& context) const { cpu::find_unique(context); }
};
template <>
struct Kernel<UniqueWithCounts, Cpu> : cpu::LookupOfElements {
  void operator()(KernelContext& context) const { cpu::find_unique(context); }
};
template <>
struct Kernel<ListDiff, Cpu> : cpu::LookupOfElements {
  void operator()(KernelContext& context) const { cpu::find_difference(context); }
};

}  // namespace dflow
