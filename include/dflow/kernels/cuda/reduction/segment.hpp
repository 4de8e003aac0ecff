#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/rows.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// Output 0: input 0, its rows added up by the ids of input 1.
void sum_segments(KernelContext& context, const KernelFunction& function);

}  // namespace cuda

template <class T>
struct Kernel<UnsortedSegmentSum, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 4;

  void operator()(KernelContext& context) const {
    cuda::sum_segments(context, cuda::kernel_function<cuda::SegmentSumBody<cuda::DeviceElement<T>>>());
  }
};

}  // namespace dflow
