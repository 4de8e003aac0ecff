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

template <class T, class I>
struct Kernel<MatrixBandPart, Cpu, T, I> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<I>& num_lower, const Tensor<I>& num_upper,
                  Tensor<T>& y) const {
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1);
    const auto num_kept = [](std::int64_t wanted, std::int64_t all) { return wanted < 0 ? all : wanted; };
    const std::int64_t lower = num_kept(num_lower.scalar(), rows), upper = num_kept(num_upper.scalar(), columns);
    cpu::for_each_row(context, x.shape(), [&](std::int64_t matrix, std::int64_t row) {
      const T* from = x.data() + (matrix * rows + row) * columns;
      T* to = y.data() + (matrix * rows + row) * columns;
      const std::int64_t first = std::clamp<std::int64_t>(row - lower, 0, columns);
      const std::int64_t last = std::clamp<std::int64_t>(row + upper + 1, first, columns);
      std::fill(to, to + first, T());
      std::copy(from + first, from + last, to + first);
      std::fill(to + last, to + columns, T());
    });
  }
};

template <class T>
struct Kernel<MatrixDiag, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& x, Tensor<T>& y) const {
    const std::int64_t n = x.dim(x.rank() - 1);
    cpu::for_each_row(context, y.shape(), [&](std::int64_t matrix, std::int64_t row) {
      T* to = y.data() + (matrix * n + row) * n;
      std::fill(to, to + n, T());
      to[row] = x.data()[matrix * n + row];
    });
  }
};

template <class T>
struct Kernel<MatrixDiagPart, Cpu, T> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return 5 * detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& x, Tensor<T>& y) const {
    static_cast<void>(context);
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1), n = std::min(rows, columns);
    for (std::int64_t i = 0; i < y.num_elements(); ++i) {
      const std::int64_t matrix = i / n, at = i % n;
      y.data()[i] = x.data()[(matrix * rows + at) * columns + at];
    }
  }
};

template <class T>
struct Kernel<MatrixSetDiag, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<T>& diagonal, Tensor<T>& y) const {
    const std::int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1), n = std::min(rows, columns);
    cpu::for_each_row(context, x.shape(), [&](std::int64_t matrix, std::int64_t row) {
      const std::int64_t at = (matrix * rows + row) * columns;
      std::copy_n(x.data() + at, columns, y.data() + at);
      if (row < n) y.data()[at + row] = diagonal.data()[matrix * n + row];
    });
  }
};

}  // namespace dflow
