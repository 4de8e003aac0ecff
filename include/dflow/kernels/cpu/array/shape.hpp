#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/shape.hpp>

namespace dflow {

template <class T>
struct Kernel<ShapeOf, Cpu, T> : detail::ShapeKernel {};
template <class T>
struct Kernel<RankOf, Cpu, T> : detail::RankKernel {};
template <class T>
struct Kernel<SizeOf, Cpu, T> : detail::SizeKernel {};

}  // namespace dflow
