#pragma once

#include <dflow/kernels/cuda/array/index_kernel.hpp>
#include <dflow/kernels/cuda/array/kernel.hpp>
#include <dflow/kernels/cuda/array/list_kernel.hpp>
#include <dflow/kernels/cuda/array/made_kernel.hpp>
#include <dflow/kernels/cuda/collectives/kernel.hpp>
#include <dflow/kernels/cuda/elementwise/chain_kernel.hpp>
#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/kernels/cuda/linalg/fourier_kernel.hpp>
#include <dflow/kernels/cuda/linalg/kernel.hpp>
#include <dflow/kernels/cuda/nn/batch_norm_kernel.hpp>
#include <dflow/kernels/cuda/nn/bias.hpp>
#include <dflow/kernels/cuda/nn/softmax_kernel.hpp>
#include <dflow/kernels/cuda/nn/window_kernel.hpp>
#include <dflow/kernels/cuda/products/kernel.hpp>
#include <dflow/kernels/cuda/random/kernel.hpp>
#include <dflow/kernels/cuda/reduction/kernel.hpp>
#include <dflow/kernels/cuda/reduction/prod_gradient_kernel.hpp>
#include <dflow/kernels/cuda/rows/kernel.hpp>
#include <dflow/kernels/cuda/rows/move_kernel.hpp>
#include <dflow/kernels/cuda/send_recv.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>
#include <dflow/kernels/cuda/state/kernel.hpp>
#include <dflow/ops/standard_ops.hpp>

#include <array>

namespace dflow {

namespace detail {

/// An op has a kernel here if there is one for an element type of its.
template <class O>
constexpr bool has_cuda_kernel() {
  RowClaims claims;
  if constexpr (O::has_kernel) gather_claims<O, Cuda>(claims, TypeList<>{});
  return claims.has_kernel;
}

template <class List>
struct CudaKernels;
template <class... Ops>
struct CudaKernels<TypeList<Ops...>> {
  using All = typename Concatenated<typename WithDerivatives<Ops>::type...>::type;
  template <class List>
  struct Having;
  template <class... Os>
  struct Having<TypeList<Os...>> {
    using type = typename Concatenated<std::conditional_t<has_cuda_kernel<Os>(), TypeList<Os>, TypeList<>>...>::type;
  };
  using Sorted = SortedKernels<Cuda, typename Having<All>::type>;
  static constexpr KernelRows rows{Sorted::entries};
};

}  // namespace detail

KernelTable standard_cuda_kernels() {
  return kernels_of<Cuda>(ops<MemberCollective>, &detail::CudaKernels<StandardOps>::rows);
}

KernelTable chaining_cuda_kernels() {
  return kernels_of<Cuda>(ops<ElementwiseChain, MemberCollective>, &detail::CudaKernels<StandardOps>::rows);
}

}  // namespace dflow
