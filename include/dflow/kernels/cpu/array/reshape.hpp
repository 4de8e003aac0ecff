#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/reshape.hpp>

namespace dflow {

template <>
struct Kernel<Reshape, Cpu> : detail::ReshapeKernel {};
template <>
struct Kernel<ExpandDims, Cpu> : detail::ReshapeKernel {};
template <>
struct Kernel<Squeeze, Cpu> : detail::ReshapeKernel {};

}  // namespace dflow
