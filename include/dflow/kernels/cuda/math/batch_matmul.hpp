#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/routines/products.hpp>
#include <dflow/ops/math/batch_matmul.hpp>

#include <cstdint>

namespace dflow {

template <class T>
struct Kernel<BatchMatMul, Cuda, T> {
  BatchMatMul::Attrs attrs;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const int rank = shape.rank();
    context.allocate_output(0, shape);
    constexpr bool conjugates = is_complex_element<T>;
    cuda::run_product<T>(context, {.batch = shape.num_elements(0, rank - 2),
                                   .m = shape[rank - 2],
                                   .n = shape[rank - 1],
                                   .k = context.input(0).dim(rank - (attrs.adj_x ? 2 : 1)),
                                   .a = cuda::operand_of(attrs.adj_x, conjugates),
                                   .b = cuda::operand_of(attrs.adj_y, conjugates)});
  }
};

}  // namespace dflow
