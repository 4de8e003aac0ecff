#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/products.hpp>
#include <dflow/kernels/cuda/cuda.hpp>

#include <complex>
#include <cstdint>
#include <span>

namespace dflow::cuda {

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
  bool accumulates = false;                  ///< adds to the contents of y
};

/// The addresses of a product's operands, in the memory of the kernel's device.
struct RowOperands {
  DType dtype = DType::invalid;
  DType result = DType::invalid;  ///< of y: the same, or float32 where that has 16 bits
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};

/// Computes a product by the library, from inputs of the kernel, its outputs and `temporaries`. Throws the library's
/// error.
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

}  // namespace dflow::cuda
