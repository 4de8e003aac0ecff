#pragma once

#include <dflow/core/sum_type.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/kernels/cpu/sparse/sparse_indices.hpp>
#include <dflow/kernels/cpu/sparse/sparse_matmul.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// The type that products are added in: integers wrap around.
template <class T>
struct SparseSum {
  using type = dflow::detail::SumType<T>;
};
template <class T>
  requires std::is_integral_v<T>
struct SparseSum<T> : std::make_unsigned<T> {};

template <class T>
T conjugate_if(T x, bool conjugate) {
  if constexpr (is_complex_element<T>) {
    return conjugate ? std::conj(x) : x;
  } else {
    return x;
  }
}

/// Columns that one thread adds together.
inline constexpr std::int64_t sparse_columns = 32;

/// y = a b: entries (rows[2 * k], columns[2 * k]) of a, b [inner, width].
struct SparseProduct {
  const std::int64_t *rows, *columns;
  std::int64_t count;
  const void *a, *b;
  std::int64_t height, width;
  bool conjugate_a, conjugate_b;
};

/// A part of the sums: rows [row, end) and columns [first, first + width).
struct SparseBlock {
  std::int64_t row, end, first, width;
};

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// A block of the sums [height, product.width].
template <class T, class C>
void add_products(const SparseProduct& product, const SparseBlock& block, C* sums) {
  const T *const a = static_cast<const T*>(product.a), *const b = static_cast<const T*>(product.b);
  C* const first = sums + block.first;
  for (std::int64_t i = block.row; i < block.end; ++i) std::fill_n(first + i * product.width, block.width, C());
  for (std::int64_t k = 0; k < product.count; ++k) {
    const std::int64_t row = product.rows[2 * k];
    if (row < block.row || row >= block.end) continue;
    const C factor = static_cast<C>(conjugate_if(a[k], product.conjugate_a));
    const T* const from = b + product.columns[2 * k] * product.width + block.first;
    C* const to = first + row * product.width;
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t j = 0; j < block.width; ++j) {
      to[j] += factor * static_cast<C>(conjugate_if(from[j], product.conjugate_b));
    }
  }
}
DFLOW_END_INDEPENDENT_LOOPS

template <class T>
void multiply_sparse(ThreadPool& pool, const SparseProduct& product, void* y) {
  using C = typename SparseSum<T>::type;
  // Threads without columns of their own have rows: each looks at all entries and adds those of its rows.
  const std::int64_t blocks = (product.width + sparse_columns - 1) / sparse_columns;
  const std::int64_t parts = std::clamp<std::int64_t>(pool.num_threads() / blocks, 1, product.height);
  const auto add_to = [&](C* sums) {
    const double cost = static_cast<double>(product.count + product.height) / static_cast<double>(parts) *
                        static_cast<double>(std::min(product.width, sparse_columns)) * 0.3;
    pool.parallel_for(blocks * parts, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        const std::int64_t first = at / parts * sparse_columns, part = at % parts;
        const std::int64_t each = (product.height + parts - 1) / parts, row = std::min(part * each, product.height);
        add_products<T>(
            product,
            {row, std::min(row + each, product.height), first, std::min(sparse_columns, product.width - first)}, sums);
      }
    });
  };
  if constexpr (sizeof(C) == sizeof(T)) {
    add_to(static_cast<C*>(y));  // an unsigned integer may stand in for a signed one
  } else {
    std::vector<C> sums(static_cast<std::size_t>(product.height * product.width));
    add_to(sums.data());
    std::transform(sums.begin(), sums.end(), static_cast<T*>(y), [](C sum) { return static_cast<T>(sum); });
  }
}

}  // namespace detail

void sparse_matmul(KernelContext& context, SparseTensorDenseMatMul::Attrs attrs) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const Tensor<std::int64_t>& indices = context.input<std::int64_t>(0);
  const std::int64_t count = indices.dim(0);
  constexpr std::array<std::int64_t, 2> no_positions{};
  find_positions(context, count, indices.data(), {context.input<std::int64_t>(2).span(), no_positions}, nullptr);
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  AnyTensor b = context.input(3);
  if (attrs.adjoint_b) {  // its rows are read as a whole
    const std::array<std::int64_t, 2> dims{b.dim(1), b.dim(0)}, from{1, b.dim(1)}, to{b.dim(0), 1};
    AnyTensor columns = context.allocate_temporary(b.dtype(), Shape{dims[0], dims[1]});
    if (b.num_elements() != 0) {
      dflow::detail::strided_copy(context, b.dtype(), dims, b.raw_data(), from, columns.raw_data(), to);
    }
    b = std::move(columns);
  }
  const std::int64_t row = attrs.adjoint_a ? 1 : 0;
  const std::int64_t* const positions = count == 0 ? no_positions.data() : indices.data();
  const detail::SparseProduct product{
      positions + row, positions + (1 - row), count,          context.input(1).raw_data(), b.raw_data(), shape[0],
      shape[1],        attrs.adjoint_a,       attrs.adjoint_b};
  visit_dtype<SparseProductTypes>(
      y.dtype(), [&]<class T>() { detail::multiply_sparse<T>(context.pool(), product, y.raw_data()); });
}

}  // namespace dflow::cpu
