#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <cstdint>

namespace dflow::detail {

/// [m, k] [k, n]
struct ProductSizes {
  std::int64_t m, n, k;
};

/// Of the matrices that are inputs 0 and 1. Fails unless they fit.
template <class T>
ProductSizes product_sizes(const KernelContext& context, bool transpose_a, bool transpose_b) {
  const Tensor<T>& a = context.input<T>(0);
  const Tensor<T>& b = context.input<T>(1);
  if (a.rank() != 2 || b.rank() != 2) refuse_shapes(context);
  const ProductSizes sizes{a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1), a.dim(transpose_a ? 0 : 1)};
  if (sizes.k != b.dim(transpose_b ? 1 : 0)) refuse_shapes(context);
  return sizes;
}

}  // namespace dflow::detail
