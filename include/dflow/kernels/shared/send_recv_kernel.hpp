#pragma once

/// Public: the kernels of Send and Recv, for devices of any type.

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>

#include <memory>

namespace dflow {

/// The kernels of Send and Recv for devices of any type: a tensor passes through as it is, and the rendezvous brings it
/// into the memory where it is wanted. A table of a device takes them as `Kernel<Send, D, T> : SendKernel {}`.
///
/// On a device that computes later a tensor is sent when the device's step has said that all is well so far
/// (`DeviceStep::status_async`): what a kernel that failed has left behind stays where it is.
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
