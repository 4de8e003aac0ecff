#pragma once

#include <dflow/kernels/cuda/bodies/prod_gradients.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow {

namespace cuda {

/// Output 0, of the shape of input 0: each element is made from the other elements along the axes in input 1.
/// `part_bytes`: the memory of one element while the kernel runs.
void make_of_others(KernelContext& context, const ReductionCode& code, std::size_t part_bytes);

/// P: the value made from the other elements.
template <template <class> class P, class T>
struct OthersKernel {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const {
    using E = DeviceElement<T>;
    make_of_others(context,
                   {&kernel_function<OthersByThreadBody<P<E>, E>>, &kernel_function<OthersByBlockBody<P<E>, E>>},
                   sizeof(typename P<E>::Part));
  }
};

}  // namespace cuda

template <class T>
struct Kernel<ExclusiveProd, Cuda, T> : cuda::OthersKernel<cuda::detail::OtherProducts, T> {};
template <class T>
struct Kernel<ExclusiveProdGrad, Cuda, T> : cuda::OthersKernel<cuda::detail::OtherProductGradients, T> {};

}  // namespace dflow
