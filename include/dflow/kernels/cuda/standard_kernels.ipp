#pragma once

#include <dflow/kernels/cuda/all.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>
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
