#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/reshape.hpp>

namespace dflow {

template <class T, class I>
struct Kernel<Reshape, Cpu, T, I> : detail::ReshapeKernel {};
template <class T>
struct Kernel<ExpandDims, Cpu, T> : detail::ReshapeKernel {};
template <class T>
struct Kernel<Squeeze, Cpu, T> : detail::ReshapeKernel {};

}  // namespace dflow
