#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/control/no_op.hpp>

namespace dflow {

template <>
struct Kernel<NoOp, Cpu> : detail::NoOpKernel {};

}  // namespace dflow
