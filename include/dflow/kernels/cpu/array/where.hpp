#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/where.hpp>

namespace dflow {

namespace cpu {
/// The kernel of Where, for all element types.
void find_nonzero(KernelContext& context);
}  // namespace cpu

template <>
struct Kernel<Where, Cpu> {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const { cpu::find_nonzero(context); }
};

}  // namespace dflow
