#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/shape.hpp>

namespace dflow {

template <>
struct Kernel<ShapeOf, Cpu> : detail::ShapeKernel {};
template <>
struct Kernel<RankOf, Cpu> : detail::RankKernel {};
template <>
struct Kernel<SizeOf, Cpu> : detail::SizeKernel {};

}  // namespace dflow
