#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>

#include <memory>

namespace dflow {

namespace cuda {

/// The kernel of a chain of elementwise ops. It is made for the chain when the step is compiled, and reads and writes
/// each element once. If no kernel can be made, or the members have unexpected shapes, the members run one after the
/// other by their own kernels. The bits and the errors are the same.
///
/// An output takes the buffer of an input that nobody else reads any more.
std::unique_ptr<AnyKernel> make_chain_kernel(const KernelInit& init);

}  // namespace cuda

template <>
struct Kernel<ElementwiseChain, Cuda> {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) { return cuda::make_chain_kernel(init); }
};

}  // namespace dflow
