#pragma once

#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/send_recv_kernel.hpp>

namespace dflow {

template <class T>
struct Kernel<Send, Cuda, T> : SendKernel {};
template <class T>
struct Kernel<Recv, Cuda, T> : RecvKernel {
  using RecvKernel::RecvKernel;
};

}  // namespace dflow
