#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>

#include <memory>

namespace dflow {

namespace cuda {

/// The kernel of a chain of elementwise ops: one that is made for it when the step is compiled, in which each element
/// is read and written once. Where none can be made, or the members have other shapes than was expected, they run one
/// after the other by their own kernels, with the same bits and the same errors.
///
/// An output takes the buffer of an input that nobody else reads any more.
std::unique_ptr<AnyKernel> make_chain_kernel(const KernelInit& init);

}  // namespace cuda

template <>
struct Kernel<ElementwiseChain, Cuda> {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) { return cuda::make_chain_kernel(init); }
};

}  // namespace dflow
