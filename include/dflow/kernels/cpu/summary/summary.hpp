#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/summary/summary.hpp>

namespace dflow {

namespace detail {

void run_scalar_summary(KernelContext& context);
void run_histogram_summary(KernelContext& context);
void run_image_summary(KernelContext& context);
void run_audio_summary(KernelContext& context);
void run_tensor_summary(KernelContext& context);
void run_merge_summary(KernelContext& context);

class SummaryKernel {
 public:
  static constexpr bool splits = false;
  using Run = void (*)(KernelContext& context);

  /// `element_ns`: the time for each element of input `input`.
  SummaryKernel(Run run, std::size_t input, double element_ns) : run_(run), input_(input), element_ns_(element_ns) {}
  double cost_ns(const KernelInit& init) const { return 1000 + element_ns_ * estimated_elements(init.inputs[input_]); }
  void operator()(KernelContext& context) const { run_(context); }

 private:
  Run run_;
  std::size_t input_;
  double element_ns_;
};

}  // namespace detail

template <>
struct Kernel<ScalarSummary, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_scalar_summary, 1, 100) {}
};
template <>
struct Kernel<HistogramSummary, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_histogram_summary, 1, 20) {}
};
template <>
struct Kernel<ImageSummary, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_image_summary, 1, 40) {}
};
template <>
struct Kernel<AudioSummaryV2, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_audio_summary, 1, 5) {}
};
template <>
struct Kernel<TensorSummaryV2, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_tensor_summary, 1, 2) {}
};
template <>
struct Kernel<MergeSummary, Cpu> : detail::SummaryKernel {
  explicit Kernel(const KernelInit&) : SummaryKernel(&detail::run_merge_summary, 0, 1000) {}
};

}  // namespace dflow
