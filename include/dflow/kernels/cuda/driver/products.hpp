#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

struct MemoryUse;
enum class StreamHandle : std::uintptr_t;
/// How a library will compute a product; 0 is none.
enum class ProductPlanHandle : std::uintptr_t { none = 0 };

/// The matrices of one operand, column by column, as cuBLAS has them.
struct ProductMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;       ///< elements from one column to the next
  std::int64_t batch_stride = 0;  ///< elements from one matrix to the next

  friend auto operator<=>(const ProductMatrix&, const ProductMatrix&) = default;
};

enum class ProductOperand : std::uint8_t { plain, transposed, adjoint };

/// The operation on a product before it is stored. The bias has one element for each row of d.
enum class ProductEpilogue : std::uint8_t { none, bias, bias_relu };

/// d[i] = epilogue(op(a[i]) op(b[i]) [+ d[i]]) for i below `batch`. Elements of 16 bits are multiplied and added in
/// float, all others in their own type, or float in TF32.
struct ProductCall {
  DType dtype = DType::invalid;   ///< of a, b and the bias
  DType result = DType::invalid;  ///< of d: the same, or float32 where that has 16 bits
  bool allows_tf32 = false;
  ProductOperand op_a = ProductOperand::plain;
  ProductOperand op_b = ProductOperand::plain;
  ProductEpilogue epilogue = ProductEpilogue::none;
  bool accumulates = false;  ///< the product is added to the contents of d
  std::int32_t batch = 1;
  std::int32_t alignment_bytes = 256;  ///< that all operands have, a power of 2
  ProductMatrix a, b, d;

  friend auto operator<=>(const ProductCall&, const ProductCall&) = default;
};

/// The addresses of a call's operands, in the memory of its device.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* d = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// The functions of cuBLASLt that dflow uses, as a thin table: `cublas_products()` calls cuBLASLt, and the tests have
/// a table that computes the call on the host as it was recorded.
///
/// Functions return at once with an error code, and do not throw.
///
/// Thread safety: all functions may be called from any thread.
class Products {
 public:
  Products() = default;
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  virtual ~Products() = default;

  /// Chooses how to compute the call with at most the given workspace; `workspace_bytes` is the size that the plan
  /// takes, aligned to 256.
  virtual ErrorCode make_product_plan(int device, const ProductCall& call, std::size_t max_workspace_bytes,
                                      ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept = 0;
  /// Work that the plan has issued still runs.
  virtual ErrorCode destroy_product_plan(int device, ProductPlanHandle plan) noexcept = 0;
  virtual ErrorCode run_product(int device, ProductPlanHandle plan, const ProductOperands& operands,
                                std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
