#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/reshape.hpp>

#include <cstdint>

namespace dflow {

template <>
struct Kernel<Reshape, Cuda> : detail::ReshapeKernel {
  static constexpr std::uint64_t host_inputs = 2;
};

template <>
struct Kernel<ExpandDims, Cuda> : detail::ReshapeKernel {
  static constexpr std::uint64_t host_inputs = 2;
};

template <>
struct Kernel<Squeeze, Cuda> : detail::ReshapeKernel {};

}  // namespace dflow
