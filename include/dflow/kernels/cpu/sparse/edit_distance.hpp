#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/sparse/edit_distance.hpp>

namespace dflow {

/// One class for all element types: only the comparisons of elements know theirs.
template <>
struct Kernel<EditDistance, Cpu> {
  EditDistance::Attrs attrs;
  double cost_ns(const KernelInit& init) const {
    return 1000 + 20 * (estimated_elements(init.inputs[1]) + estimated_elements(init.inputs[4]));
  }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
