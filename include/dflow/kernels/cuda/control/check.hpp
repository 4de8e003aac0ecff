#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/control/check.hpp>

#include <cstdint>
#include <string>

namespace dflow {

namespace cuda {

/// Input 0 holds neither NaN nor Inf; where it does the step fails.
void check_finite(KernelContext& context, const std::string& message, const KernelFunction& function);

}  // namespace cuda

template <>
struct Kernel<EnsureShape, Cuda> : detail::EnsureShapeKernel {};

template <>
struct Kernel<Assert, Cuda> : detail::AssertKernel {
  static constexpr std::uint64_t host_inputs = 3;
};

template <class T>
struct Kernel<CheckNumerics, Cuda, T> {
  CheckNumerics::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::check_finite(context, attrs.message, cuda::kernel_function<cuda::CheckFiniteBody<T>>());
    context.set_output(0, context.input(0));
  }
};

}  // namespace dflow
