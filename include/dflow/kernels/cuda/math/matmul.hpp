#pragma once

#include <dflow/kernels/cuda/routines/products.hpp>
#include <dflow/kernels/shared/product_sizes.hpp>
#include <dflow/ops/math/matmul.hpp>

namespace dflow {

template <class T>
struct Kernel<MatMul, Cuda, T> {
  MatMul::Attrs attrs;

  void operator()(KernelContext& context) const {
    const auto [m, n, k] = detail::product_sizes<T>(context, attrs.transpose_a, attrs.transpose_b);
    context.allocate_output(0, {m, n});
    cuda::run_product<T>(
        context,
        {.m = m, .n = n, .k = k, .a = cuda::operand_of(attrs.transpose_a), .b = cuda::operand_of(attrs.transpose_b)});
  }
};

}  // namespace dflow
