#pragma once

/// Public: the kernels of Send and Recv, for devices of any type.

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>

#include <memory>

namespace dflow {

/// The kernels of Send and Recv for devices of any type. A tensor passes through unchanged, and the rendezvous brings
/// it into the memory where it is wanted. The table of a device takes them as `Kernel<Send, D, T> : SendKernel {}`.
///
/// On a device that computes later, a tensor is sent when the device's step reports that all is well so far
/// (`DeviceStep::status_async`). The output of a kernel that failed stays where it is.
struct SendKernel {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init);
};

struct RecvKernel {
  static constexpr bool makes_dead_outputs = true;

  explicit RecvKernel(const KernelInit& init);
  void run_async(KernelContext& context, AsyncKernel::Done done) const;

  RendezvousKey key;
};

}  // namespace dflow
