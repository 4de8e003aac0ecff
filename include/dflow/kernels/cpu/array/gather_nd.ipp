#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/gather_nd.hpp>
#include <dflow/kernels/cpu/array/named_rows.hpp>
#include <dflow/kernels/shared/position_text.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace dflow::cpu {

namespace detail {

/// Tuples of `depth` indices, which name rows of `row` elements of a tensor.
struct IndexTuples {
  int depth;
  std::int64_t row, count;

  /// `all`: the elements of all rows that the tuples name.
  IndexTuples(const AnyTensor& indices, const Shape& target, std::int64_t all)
      : depth(static_cast<int>(indices.dim(indices.rank() - 1))),
        row(target.num_elements(depth, target.rank())),
        count(depth > 0 ? indices.num_elements() / depth
              : row > 0 ? all / row
                        : 0) {}
};

/// The row of `target` that each tuple names: [count]. Fails for an index outside of its dimension.
AnyTensor named_rows(KernelContext& context, const AnyTensor& indices, const IndexTuples& tuples, const Shape& target) {
  AnyTensor rows = context.allocate_temporary(DType::int64, {tuples.count});
  auto* const to = static_cast<std::int64_t*>(rows.raw_data());
  const std::int64_t depth = tuples.depth;
  std::array<std::uint64_t, max_rank> limits{};
  for (int d = 0; d < tuples.depth; ++d) limits[static_cast<std::size_t>(d)] = static_cast<std::uint64_t>(target[d]);
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> first_bad{none};
  visit_dtype<IndexTypes>(indices.dtype(), [&]<class I>() {
    const I* const from = static_cast<const I*>(indices.raw_data());
    const auto name_rows = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        // As unsigned numbers, negative ones are too large. A product wraps only where the target has no elements.
        std::uint64_t at = 0;
        bool is_inside = true;
        for (std::int64_t d = 0; d < depth; ++d) {
          const auto index = static_cast<std::uint64_t>(std::int64_t{from[i * depth + d]});
          is_inside = is_inside && index < limits[static_cast<std::size_t>(d)];
          at = at * limits[static_cast<std::size_t>(d)] + index;
        }
        to[i] = static_cast<std::int64_t>(at);
        if (is_inside) continue;
        std::int64_t known = first_bad.load(std::memory_order_relaxed);
        while (i < known && !first_bad.compare_exchange_weak(known, i, std::memory_order_relaxed)) {
        }
        return;
      }
    };
    context.pool().parallel_for(tuples.count, 1 + static_cast<double>(depth), name_rows);
    const std::int64_t bad = first_bad.load(std::memory_order_relaxed);
    if (bad == none) return;
    for (std::int64_t d = 0; d < depth; ++d) {
      const std::int64_t position = bad * depth + d, index = from[position];
      if (index >= 0 && index < target[static_cast<int>(d)]) continue;
      context.fail(str_cat("indices", dflow::detail::position_to_string(position, indices.shape()), " = ", index,
                           " is outside [0, ", target[static_cast<int>(d)], "), dimension ", d, " of shape ",
                           target.to_string()));
    }
  });
  return rows;
}

}  // namespace detail

void gather_nd(KernelContext& context) {
  const AnyTensor &params = context.input(0), &indices = context.input(1);
  const Shape shape = dflow::detail::inferred_shape(context);
  const detail::IndexTuples tuples(indices, params.shape(), shape.num_elements());
  const AnyTensor rows = detail::named_rows(context, indices, tuples, params.shape());
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  dflow::detail::copy_named_rows(context, params, tuples.row, rows.span<std::int64_t>(), y);
}

void scatter_nd(KernelContext& context) {
  const AnyTensor &indices = context.input(0), &updates = context.input(1);
  const Shape shape = dflow::detail::inferred_shape(context);
  const detail::IndexTuples tuples(indices, shape, updates.num_elements());
  const AnyTensor rows = detail::named_rows(context, indices, tuples, shape);
  AnyTensor& y = context.allocate_output(0, shape);
  const DType dtype = y.dtype();
  context.pool().parallel_for(shape.num_elements(), dflow::detail::copy_cost_ns(dtype),
                              [&](std::int64_t begin, std::int64_t end) {
                                dflow::detail::clear_elements(dtype, end - begin, dflow::detail::element(y, begin));
                              });
  if (shape.num_elements() == 0 || updates.num_elements() == 0) return;
  visit_dtype<NumberTypes>(dtype, [&]<class T>() {
    static_cast<void>(scatter_rows(context.pool(), ScatterOp::add, shape.num_elements() / tuples.row, tuples.count,
                                   tuples.row, static_cast<const std::int64_t*>(rows.raw_data()),
                                   static_cast<const T*>(updates.raw_data()), static_cast<T*>(y.raw_data()),
                                   cpu_options(context)));
  });
}

}  // namespace dflow::cpu
