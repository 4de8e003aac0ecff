#pragma once

#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/shared/send_recv_kernel.hpp>

namespace dflow {

template <>
struct Kernel<Send, Cpu> : SendKernel {};

template <>
struct Kernel<Recv, Cpu> : RecvKernel {
  using RecvKernel::RecvKernel;
};

}  // namespace dflow
