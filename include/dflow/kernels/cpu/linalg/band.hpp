#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/linalg/band.hpp>

#include <algorithm>

namespace dflow {

namespace cpu {

/// Calls body(matrix, row) for each row of each matrix of `shape`.
template <class Body>
void for_each_row(KernelContext& context, const Shape& shape, const Body& body) {
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  if (shape.num_elements() == 0) return;
  context.pool().parallel_for(shape.num_elements(0, shape.rank() - 1), 5.0 + static_cast<double>(columns),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t i = begin; i < end; ++i) body(i / rows, i % rows);
                              });
}

}  // namespace cpu

template <>
struct Kernel<MatrixBandPart, Cpu> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const AnyTensor& x, const AnyTensor& num_lower, const AnyTensor& num_upper,
                  AnyTensor& y) const {
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
    const auto num_kept = [](const AnyTensor& number, std::int64_t all) {
      const std::int64_t wanted = detail::SmallIntegers(number)[0];
      return wanted < 0 ? all : wanted;
    };
    const std::int64_t lower = num_kept(num_lower, rows), upper = num_kept(num_upper, columns);
    const DType dtype = x.dtype();
    cpu::for_each_row(context, x.shape(), [&](std::int64_t matrix, std::int64_t row) {
      const std::int64_t at = (matrix * rows + row) * columns;
      const std::int64_t first = std::clamp<std::int64_t>(row - lower, 0, columns);
      const std::int64_t last = std::clamp<std::int64_t>(row + upper + 1, first, columns);
      detail::clear_elements(dtype, first, detail::element(y, at));
      detail::copy_elements(dtype, last - first, detail::element(x, at + first), detail::element(y, at + first));
      detail::clear_elements(dtype, columns - last, detail::element(y, at + last));
    });
  }
};

template <>
struct Kernel<MatrixDiag, Cpu> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const AnyTensor& x, AnyTensor& y) const {
    const std::int64_t n = x.dim(x.rank() - 1);
    const DType dtype = x.dtype();
    cpu::for_each_row(context, y.shape(), [&](std::int64_t matrix, std::int64_t row) {
      const std::int64_t at = matrix * n + row;
      detail::clear_elements(dtype, n, detail::element(y, at * n));
      detail::copy_elements(dtype, 1, detail::element(x, at), detail::element(y, at * n + row));
    });
  }
};

template <>
struct Kernel<MatrixDiagPart, Cpu> {
  double cost_ns(const KernelInit& init) const { return 5 * detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const AnyTensor& x, AnyTensor& y) const {
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1), n = std::min(rows, columns);
    if (y.num_elements() == 0) return;
    const std::int64_t dims[] = {y.num_elements() / n, n}, from[] = {rows * columns, columns + 1}, to[] = {n, 1};
    detail::strided_copy(context, x.dtype(), dims, x.raw_data(), from, y.raw_data(), to);
  }
};

template <>
struct Kernel<MatrixSetDiag, Cpu> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const AnyTensor& x, const AnyTensor& diagonal, AnyTensor& y) const {
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1), n = std::min(rows, columns);
    const DType dtype = x.dtype();
    cpu::for_each_row(context, x.shape(), [&](std::int64_t matrix, std::int64_t row) {
      const std::int64_t at = (matrix * rows + row) * columns;
      detail::copy_elements(dtype, columns, detail::element(x, at), detail::element(y, at));
      if (row >= n) return;
      detail::copy_elements(dtype, 1, detail::element(diagonal, matrix * n + row), detail::element(y, at + row));
    });
  }
};

}  // namespace dflow
