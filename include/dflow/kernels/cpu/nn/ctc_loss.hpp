#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/nn/ctc.hpp>

namespace dflow {

/// One class for both element types: all but reading and writing rows is done in double.
template <>
struct Kernel<CTCLoss, Cpu> {
  CTCLoss::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 1000 + 30 * estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
