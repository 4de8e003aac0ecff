#pragma once

#include <dflow/kernels/cuda/driver/solvers.hpp>
#include <dflow/kernels/cuda/linalg/functions.hpp>
#include <dflow/kernels/cuda/linalg/kernel_work.hpp>

#include <cstdint>
#include <string_view>

namespace dflow::cuda::detail {

/// The matrices in the last two dimensions of a tensor.
struct MatrixSizes {
  explicit MatrixSizes(const Shape& shape)
      : count(shape.num_elements(0, shape.rank() - 2)),
        rows(shape[shape.rank() - 2]),
        columns(shape[shape.rank() - 1]) {}

  std::int64_t size() const { return rows * columns; }
  bool are_empty() const { return rows == 0 || columns == 0; }

  std::int64_t count, rows, columns;
};

/// The work of a kernel with the matrices of one call: copies from row by row to column by column and back, the
/// library's calls, errors.
class MatrixWork : public KernelWork {
 public:
  MatrixWork(KernelContext& context, const LinalgFunctions& functions) : KernelWork(context), functions_(functions) {}

  /// The matrices of x, row by row, as [count, columns, rows].
  AnyTensor& by_columns(const AnyTensor& x);
  /// to [count, rows, columns] becomes the first rows and columns of matrices of `from_rows` rows and `from_columns`
  /// columns, which lie column by column.
  void copy_by_rows(const AnyTensor& from, std::int64_t from_rows, std::int64_t from_columns, AnyTensor& to) const;

  void fill_identity(AnyTensor& y) const;
  /// y = conj(x), element by element; y may be x.
  void conjugate(const AnyTensor& x, AnyTensor& y) const;
  /// The elements below (above) the diagonals of y become 0.
  void keep_triangle(AnyTensor& y, bool is_lower) const;

  /// Calls the library for each of `count` matrices; `fill(operands, i)` sets the addresses of matrix i. The info of
  /// each: int32 [count].
  template <class Fill>
  const AnyTensor& run(const SolverCall& call, std::int64_t count, const Fill& fill) {
    const AnyTensor& info = cleared(DType::int32, {count});
    SolverOperands operands;
    for (std::int64_t i = 0; i < count; ++i) {
      operands.info = static_cast<std::int32_t*>(element_of(info, i));
      fill(operands, i);
      if (i == 0) find_workspace(call, operands);
      issue(call, operands);
    }
    return info;
  }

  /// The step fails with InvalidArgument if a diagonal is as CheckDiagonalBody says.
  void check_diagonals(const AnyTensor& a, std::int64_t count, std::int64_t n, bool must_be_positive,
                       std::string_view message) const;
  void check_info(const AnyTensor& info, std::string_view message) const;
  void check_values(const AnyTensor& values, std::string_view message) const;
  /// The elements that count in flagged matrices.
  struct Flagged {
    bool is_lower = false;  ///< elements above the diagonal do not count
    bool only_nan = false;  ///< infinities do not count
  };
  /// uint32 [count]: 1 for matrices of x that hold an element that is not finite. It is an error if there is a
  /// message.
  const AnyTensor& flag_matrices(const AnyTensor& x, Flagged counts, std::string_view message = {});
  const AnyTensor& flag_matrices(const AnyTensor& x) { return flag_matrices(x, {}); }
  void replace_flagged(const AnyTensor& flags, AnyTensor& y, bool by_nan) const;

 private:
  void find_workspace(const SolverCall& call, SolverOperands& operands);
  void issue(const SolverCall& call, const SolverOperands& operands) const;
  CudaStep::Note note(std::string_view message) const;

  const LinalgFunctions functions_;
};

/// The element type of a decomposition's values.
inline DType real_type(DType dtype) {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

}  // namespace dflow::cuda::detail
