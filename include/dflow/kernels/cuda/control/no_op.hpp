#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/control/no_op.hpp>

namespace dflow {

template <>
struct Kernel<NoOp, Cuda> : detail::NoOpKernel {};

}  // namespace dflow
