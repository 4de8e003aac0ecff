#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/shape.hpp>

#include <cstdint>

namespace dflow {

template <>
struct Kernel<ShapeOf, Cuda> : detail::ShapeKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

template <>
struct Kernel<RankOf, Cuda> : detail::RankKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

template <>
struct Kernel<SizeOf, Cuda> : detail::SizeKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

}  // namespace dflow
