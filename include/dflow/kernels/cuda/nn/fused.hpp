#pragma once

#include <dflow/kernels/cuda/nn/windows.hpp>
#include <dflow/kernels/cuda/routines/products.hpp>
#include <dflow/kernels/shared/product_sizes.hpp>
#include <dflow/ops/nn/fused.hpp>

namespace dflow {

template <>
struct Kernel<FusedMatMul, Cuda, float> {
  FusedMatMul::Attrs attrs;

  void operator()(KernelContext& context) const {
    const auto [m, n, k] = detail::product_sizes<float>(context, attrs.transpose_a, attrs.transpose_b);
    const AnyTensor& bias = context.input(2);
    if (bias.rank() != 1 || bias.dim(0) != n) detail::refuse_shapes(context);
    context.allocate_output(0, {m, n});
    cuda::run_library_product(context, {.m = m,
                                        .n = n,
                                        .k = k,
                                        .a = cuda::operand_of(attrs.transpose_a),
                                        .b = cuda::operand_of(attrs.transpose_b),
                                        .bias = &bias,
                                        .relu = attrs.relu});
  }
};

template <>
struct Kernel<FusedConv2D, Cuda, float> {
  FusedConv2D::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::convolve(context, attrs.convolution(), {.bias = &context.input(2), .relu = attrs.relu});
  }
};

}  // namespace dflow
