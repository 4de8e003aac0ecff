#pragma once

#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/shared/send_recv_kernel.hpp>

namespace dflow {

template <class T>
struct Kernel<Send, Cpu, T> : SendKernel {};

template <class T>
struct Kernel<Recv, Cpu, T> : RecvKernel {
  using RecvKernel::RecvKernel;
};

}  // namespace dflow
