#pragma once

#include <dflow/kernels/cuda/array/concat.hpp>
#include <dflow/kernels/cuda/array/fill.hpp>
#include <dflow/kernels/cuda/array/gather.hpp>
#include <dflow/kernels/cuda/array/like.hpp>
#include <dflow/kernels/cuda/array/one_hot.hpp>
#include <dflow/kernels/cuda/array/reshape.hpp>
#include <dflow/kernels/cuda/array/shape.hpp>
#include <dflow/kernels/cuda/array/slice.hpp>
#include <dflow/kernels/cuda/array/transpose.hpp>
#include <dflow/kernels/cuda/control/check.hpp>
#include <dflow/kernels/cuda/control/no_op.hpp>
#include <dflow/kernels/cuda/control/tensor_list.hpp>
#include <dflow/kernels/cuda/data_flow/partition.hpp>
#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/kernels/cuda/internal/elementwise_chain.hpp>
#include <dflow/kernels/cuda/internal/member_collective.hpp>
#include <dflow/kernels/cuda/linalg/band.hpp>
#include <dflow/kernels/cuda/linalg/decompositions.hpp>
#include <dflow/kernels/cuda/linalg/fourier.hpp>
#include <dflow/kernels/cuda/math/batch_matmul.hpp>
#include <dflow/kernels/cuda/math/broadcast.hpp>
#include <dflow/kernels/cuda/math/cast.hpp>
#include <dflow/kernels/cuda/math/matmul.hpp>
#include <dflow/kernels/cuda/math/select.hpp>
#include <dflow/kernels/cuda/nn/batch_norm.hpp>
#include <dflow/kernels/cuda/nn/bias.hpp>
#include <dflow/kernels/cuda/nn/fused.hpp>
#include <dflow/kernels/cuda/nn/softmax.hpp>
#include <dflow/kernels/cuda/nn/windows.hpp>
#include <dflow/kernels/cuda/random/random.hpp>
#include <dflow/kernels/cuda/random/shuffle.hpp>
#include <dflow/kernels/cuda/reduction/add_n.hpp>
#include <dflow/kernels/cuda/reduction/prod_gradient.hpp>
#include <dflow/kernels/cuda/reduction/reduce.hpp>
#include <dflow/kernels/cuda/reduction/segment.hpp>
#include <dflow/kernels/cuda/send_recv/send_recv.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>
#include <dflow/kernels/cuda/state/scatter.hpp>
#include <dflow/kernels/cuda/state/variable.hpp>
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
