#pragma once

#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/send_recv_kernel.hpp>

namespace dflow {

template <>
struct Kernel<Send, Cuda> : SendKernel {};
template <>
struct Kernel<Recv, Cuda> : RecvKernel {
  using RecvKernel::RecvKernel;
};

}  // namespace dflow
