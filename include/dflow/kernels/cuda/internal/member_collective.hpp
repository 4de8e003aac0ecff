#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/internal/member_collective.hpp>

#include <memory>

namespace dflow {

namespace cuda {

/// The kernel of a GPU's part in a collective, which all members' GPUs compute together (`DeviceGroup`). If earlier
/// kernels may have found an error, the kernel reads it first: other members must not compute with the values that a
/// failed kernel has left.
std::unique_ptr<AnyKernel> make_member_kernel(const KernelInit& init);

}  // namespace cuda

template <>
struct Kernel<MemberCollective, Cuda> {
  static bool supports(const TypeArgs& types) { return is_plain(types[0]); }
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) { return cuda::make_member_kernel(init); }
};

}  // namespace dflow
