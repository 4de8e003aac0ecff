#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/gather_nd.hpp>

namespace dflow {

namespace cpu {
/// The kernels of GatherNd and ScatterNd, for all element types.
void gather_nd(KernelContext& context);
void scatter_nd(KernelContext& context);
}  // namespace cpu

template <>
struct Kernel<GatherNd, Cpu> : detail::SplitsUnlessStrings {
  double cost_ns(const KernelInit& init) const {
    return detail::move_cost_ns(init) + estimated_elements(init.inputs[1]) * 3;
  }
  void operator()(KernelContext& context) const { cpu::gather_nd(context); }
};
template <>
struct Kernel<ScatterNd, Cpu> {
  double cost_ns(const KernelInit& init) const {
    return detail::move_cost_ns(init) + estimated_elements(init.inputs[0]) * 3 + estimated_elements(init.inputs[1]);
  }
  void operator()(KernelContext& context) const { cpu::scatter_nd(context); }
};

}  // namespace dflow
