#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/nn/bias.hpp>

#include <array>
#include <span>

namespace dflow {

template <class T>
struct Kernel<BiasAdd, Cuda, T> {
  void operator()(KernelContext& context) const {
    const AnyTensor& x = context.input(0);
    const AnyTensor& bias = context.input(1);
    if (x.rank() < 2 || bias.rank() != 1 || bias.dim(0) != x.dim(x.rank() - 1)) detail::refuse_shapes(context);
    // Before the output, which may take the buffer of x.
    const std::array<const AnyTensor*, 2> inputs{&x, &bias};
    const std::array<const void*, 2> elements{x.raw_data(), bias.raw_data()};
    const Shape shape = x.shape();
    const BroadcastWalk walk(inputs, shape);
    AnyTensor& y = context.forward_or_allocate(0, 0, shape);
    if (y.num_elements() == 0) return;
    cuda::run_elementwise(context, cuda::detail::elementwise_code<Add, T>(), walk, elements.data(), y);
  }
  static const Formula* formula(int) { return cuda::bias_formula(); }
};

template <class T>
struct Kernel<BiasAddGrad, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::reduce_to_channels(context, cuda::reduction_code<cuda::detail::SumReduction, T>());
  }
};

}  // namespace dflow
