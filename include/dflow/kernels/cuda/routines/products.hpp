#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/products.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/product_sizes.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/nn/fused.hpp>

#include <complex>
#include <cstdint>
#include <span>

namespace dflow {

namespace cuda {

/// Element types that cuBLASLt multiplies; the others have a kernel of ours.
template <class T>
inline constexpr bool is_library_product_type =
    math::HalfPrecision<T> || is_floating_element<T> || is_complex_element<T>;

/// A product as ops have it, row by row: a [batch, m, k], b [batch, k, n], y [batch, m, n].
struct RowProduct {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  ProductOperand a = ProductOperand::plain;  ///< [k, m] unless it is plain
  ProductOperand b = ProductOperand::plain;  ///< [n, k]
  const AnyTensor* bias = nullptr;           ///< [n]
  bool relu = false;                         ///< of the sum with the bias
  bool accumulates = false;                  ///< adds to what y holds
};

/// Where the operands of a product lie, in the memory of the kernel's device.
struct RowOperands {
  DType dtype = DType::invalid;
  DType result = DType::invalid;  ///< of y: the same, or float32 where that has 16 bits
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};

/// Computes a product by the library, from inputs of the kernel, its outputs and `temporaries`. Throws what that says.
void run_library_product(KernelContext& context, const RowProduct& product, const RowOperands& operands,
                         std::span<const AnyTensor* const> temporaries = {});
/// Computes output 0 of the kernel from inputs 0 and 1.
void run_library_product(KernelContext& context, const RowProduct& product);
/// The same by a kernel that adds in the elements' own type.
void run_grid_product(KernelContext& context, const RowProduct& product, const KernelFunction& function);

template <class T>
void run_product(KernelContext& context, const RowProduct& product) {
  if constexpr (is_library_product_type<T>) {
    run_library_product(context, product);
  } else {
    run_grid_product(context, product, kernel_function<ProductBody<T>>());
  }
}

constexpr ProductOperand operand_of(bool is_transposed, bool is_conjugated = false) {
  return !is_transposed ? ProductOperand::plain : is_conjugated ? ProductOperand::adjoint : ProductOperand::transposed;
}

}  // namespace cuda

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
