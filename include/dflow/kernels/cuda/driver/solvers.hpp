#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>
#include <dflow/kernels/cuda/driver/products.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

/// The operation of a library on a matrix a, and on b. Both lie column by column, without gaps.
enum class SolverKind : std::uint8_t {
  cholesky,          ///< the lower triangle of a [n, n] becomes L with a = L L^H
  cholesky_solve,    ///< b [n, k] becomes a^-1 b; of a: the triangle L
  lu,                ///< a [n, n] becomes its factors, L without its diagonal of ones; pivots [n], counted from 1
  lu_solve,          ///< b [n, k] becomes op(a)^-1 b, from factors and pivots
  triangular_solve,  ///< b [n, k] becomes op(a)^-1 b; of a [n, n]: the triangle that `is_lower` says
  qr,                ///< a [m, n] becomes R over the vectors of its reflections, with their factors tau [min(m, n)]
  qr_vectors,        ///< a [m, n] with k reflections becomes the columns of their product: k <= n <= m
  eigen,             ///< a [n, n], of its lower triangle: values [n], ascending; a becomes the vectors where wanted
  svd,               ///< a [m, n], m >= n, is used up: values [n], descending; where wanted u [m, n or m], vh [n, n]
};

struct SolverCall {
  SolverKind kind = SolverKind::cholesky;
  DType dtype = DType::invalid;  ///< float32, float64 or complex; values are of its real part's type
  std::int64_t m = 0, n = 0, k = 0;
  ProductOperand op = ProductOperand::plain;
  bool is_lower = true;
  bool wants_vectors = false;
  bool has_full_u = false;

  friend auto operator<=>(const SolverCall&, const SolverCall&) = default;
};

/// The addresses of the operands, in the memory of the call's device.
struct SolverOperands {
  void* a = nullptr;
  void* b = nullptr;
  void* tau = nullptr;
  std::int64_t* pivots = nullptr;
  void* values = nullptr;
  void* u = nullptr;
  void* vh = nullptr;
  std::int32_t* info = nullptr;  ///< becomes 0 where all went well; not of solves and of `triangular_solve`
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// The functions that dflow uses of cuSOLVER, and of cuBLAS for triangles, as a thin table: `cusolver_solvers()`
/// calls them, and the tests have a table that computes the call on the host as it was recorded.
///
/// Functions return with an error code, and do not throw; the libraries may wait for the device in `eigen` and `svd`.
///
/// Thread safety: all functions may be called from any thread.
class Solvers {
 public:
  Solvers() = default;
  Solvers(const Solvers&) = delete;
  Solvers& operator=(const Solvers&) = delete;
  virtual ~Solvers() = default;

  /// How much memory, aligned to 256, the call takes beside its operands, and others of their kind.
  virtual ErrorCode solver_workspace(int device, const SolverCall& call, const SolverOperands& operands,
                                     std::size_t& bytes) noexcept = 0;
  virtual ErrorCode run_solver(int device, const SolverCall& call, const SolverOperands& operands,
                               std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
