#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/reduction/sorted_segment.hpp>

namespace dflow {

namespace cpu {

enum class SegmentRule : std::uint8_t { sum, mean, sum_by_root, product, minimum, maximum };

/// The kernel of the reductions of sorted segments. If it is sparse, input 1 names the rows.
void reduce_segments(KernelContext& context, SegmentRule rule, bool is_sparse);
/// The kernel of the gradients of sparse reductions.
void segment_gradient(KernelContext& context, SegmentRule rule);

template <SegmentRule rule, bool is_sparse = false>
struct SegmentKernel {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const { reduce_segments(context, rule, is_sparse); }
};
template <SegmentRule rule>
struct SegmentGradientKernel {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const { segment_gradient(context, rule); }
};

}  // namespace cpu

template <>
struct Kernel<SegmentSum, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::sum> {};
template <>
struct Kernel<SegmentMean, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::mean> {};
template <>
struct Kernel<SegmentProd, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::product> {};
template <>
struct Kernel<SegmentMin, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::minimum> {};
template <>
struct Kernel<SegmentMax, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::maximum> {};
template <>
struct Kernel<SparseSegmentSum, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::sum, true> {};
template <>
struct Kernel<SparseSegmentMean, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::mean, true> {};
template <>
struct Kernel<SparseSegmentSqrtN, Cpu> : cpu::SegmentKernel<cpu::SegmentRule::sum_by_root, true> {};
template <>
struct Kernel<SparseSegmentSumGrad, Cpu> : cpu::SegmentGradientKernel<cpu::SegmentRule::sum> {};
template <>
struct Kernel<SparseSegmentMeanGrad, Cpu> : cpu::SegmentGradientKernel<cpu::SegmentRule::mean> {};
template <>
struct Kernel<SparseSegmentSqrtNGrad, Cpu> : cpu::SegmentGradientKernel<cpu::SegmentRule::sum_by_root> {};

}  // namespace dflow
