#include "cuda/recorded_product.hpp"

#include <dflow/base/str_cat.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/core/tensor.hpp>

#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>

namespace dflow::testing {

using cuda::MemoryUse;
using cuda::ProductCall;
using cuda::ProductEpilogue;
using cuda::ProductMatrix;
using cuda::ProductOperand;
using cuda::ProductOperands;

namespace {

struct ProductExtents {
  std::int64_t rows, columns;
};
ProductExtents extents_of(const ProductMatrix& matrix, ProductOperand operand) {
  return operand == ProductOperand::plain ? ProductExtents{matrix.rows, matrix.columns}
                                          : ProductExtents{matrix.columns, matrix.rows};
}

std::size_t bytes_of(const ProductCall& call, const ProductMatrix& matrix, DType dtype) {
  const std::int64_t elements =
      (call.batch - 1) * matrix.batch_stride + (matrix.columns - 1) * matrix.leading + matrix.rows;
  return static_cast<std::size_t>(elements) * size_of(dtype);
}

float in_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFFu + (bits >> 13 & 1u)) & ~0x1FFFu);
}

template <class T>
using ProductSum = std::conditional_t<(sizeof(T) == 2), float, T>;

template <class T>
ProductSum<T> element_of(const ProductCall& call, const void* data, const ProductMatrix& matrix, ProductOperand operand,
                         std::int64_t item, std::int64_t i, std::int64_t j) {
  if (operand != ProductOperand::plain) std::swap(i, j);
  const T element = static_cast<const T*>(data)[item * matrix.batch_stride + j * matrix.leading + i];
  if constexpr (is_complex_element<T>) {
    if (operand == ProductOperand::adjoint) return std::conj(element);
  }
  if constexpr (std::is_same_v<T, float>) return call.allows_tf32 ? in_tf32(element) : element;
  return static_cast<ProductSum<T>>(element);
}

template <class T, class D>
void compute(const ProductCall& call, const ProductOperands& operands) {
  const std::int64_t inner = extents_of(call.a, call.op_a).columns;
  for (std::int64_t item = 0; item < call.batch; ++item) {
    for (std::int64_t j = 0; j < call.d.columns; ++j) {
      for (std::int64_t i = 0; i < call.d.rows; ++i) {
        ProductSum<T> sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += element_of<T>(call, operands.a, call.a, call.op_a, item, i, k) *
                 element_of<T>(call, operands.b, call.b, call.op_b, item, k, j);
        }
        D& to = static_cast<D*>(operands.d)[item * call.d.batch_stride + j * call.d.leading + i];
        if (call.accumulates) sum += static_cast<ProductSum<T>>(to);
        if (call.epilogue != ProductEpilogue::none) {
          sum += static_cast<ProductSum<T>>(static_cast<const T*>(operands.bias)[i]);
          if constexpr (!is_complex_element<T>) {
            if (call.epilogue == ProductEpilogue::bias_relu && sum < ProductSum<T>(0)) sum = 0;
          }
        }
        to = static_cast<D>(sum);
      }
    }
  }
}

}  // namespace

std::string what_is_wrong_with(const ProductCall& call) {
  const ProductExtents a = extents_of(call.a, call.op_a), b = extents_of(call.b, call.op_b);
  if (a.columns != b.rows || call.d.rows != a.rows || call.d.columns != b.columns) return "its matrices do not fit";
  for (const ProductMatrix* matrix : {&call.a, &call.b, &call.d}) {
    if (matrix->rows < 1 || matrix->columns < 1) return "a matrix without elements";
    if (matrix->leading < matrix->rows) return "columns that overlap";
  }
  if (call.batch < 1) return str_cat("a batch of ", call.batch);
  if (call.batch > 1 && call.d.batch_stride < call.d.leading * call.d.columns) return "results that overlap";
  if (!std::has_single_bit(static_cast<unsigned>(call.alignment_bytes))) return "an alignment that is no power of 2";
  if (static_cast<std::size_t>(call.alignment_bytes) < size_of(call.dtype)) {
    return "operands that are not aligned as their elements";
  }
  if (call.result != call.dtype && (size_of(call.dtype) != 2 || call.result != DType::float32)) {
    return str_cat("a product of ", dtype_name(call.dtype), " as ", dtype_name(call.result));
  }
  const bool is_real = is_floating(call.dtype);
  if (!is_real && !is_complex(call.dtype)) return str_cat("elements of type ", dtype_name(call.dtype));
  if (call.allows_tf32 && call.dtype != DType::float32) return "TF32 of elements that are not float";
  if (call.epilogue != ProductEpilogue::none && (!is_real || call.dtype == DType::float64)) {
    return str_cat("an epilogue of ", dtype_name(call.dtype));
  }
  if (is_real && (call.op_a == ProductOperand::adjoint || call.op_b == ProductOperand::adjoint)) {
    return "an adjoint of real numbers";
  }
  return {};
}

std::vector<MemoryUse> memory_of(const ProductCall& call, const ProductOperands& operands) {
  std::vector<MemoryUse> all{{operands.a, bytes_of(call, call.a, call.dtype), false},
                             {operands.b, bytes_of(call, call.b, call.dtype), false},
                             {operands.d, bytes_of(call, call.d, call.result), true}};
  if (call.epilogue != ProductEpilogue::none) {
    all.push_back({operands.bias, static_cast<std::size_t>(call.d.rows) * size_of(call.dtype), false});
  }
  if (operands.workspace_bytes != 0) all.push_back({operands.workspace, operands.workspace_bytes, true});
  return all;
}

void compute_product(const ProductCall& call, const ProductOperands& operands) {
  if (operands.workspace_bytes != 0) std::memset(operands.workspace, 0xA5, operands.workspace_bytes);
  visit_dtype<NumberTypes>(call.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 2 && is_floating_element<T>) {
      if (call.result == DType::float32) return compute<T, float>(call, operands), 0;
    }
    if constexpr (is_floating_element<T> || is_complex_element<T>) compute<T, T>(call, operands);
    return 0;
  });
}

}  // namespace dflow::testing
