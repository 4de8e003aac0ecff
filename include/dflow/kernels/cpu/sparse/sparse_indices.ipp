#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/sparse/sparse_indices.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dflow::cpu {

namespace detail {

using dflow::detail::dims_to_string;

/// Row `i` of indices as text: "[1,4]".
template <class I>
std::string index_text(const I* indices, std::int64_t i, std::size_t rank) {
  const I* const row = indices + i * static_cast<std::int64_t>(rank);
  std::string text = "[";
  for (std::size_t d = 0; d < std::min<std::size_t>(rank, 16); ++d) text += str_cat(d == 0 ? "" : ",", row[d]);
  return text + (rank > 16 ? ",...]" : "]");
}

/// Row-major strides of a tensor with these extents. Fails for extents that no tensor has.
std::vector<std::int64_t> strides_of(KernelContext& context, std::span<const std::int64_t> extents) {
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 0) context.fail(str_cat("dimension ", d, " of the dense shape is ", extents[d]));
  }
  const std::optional<std::int64_t> count = try_product(extents);
  if (!count) context.fail(str_cat("a tensor of shape ", dims_to_string(extents), " has more than 2^63-1 elements"));
  std::vector<std::int64_t> strides(extents.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = extents.size(); d-- > 0 && *count != 0;) {  // no index lies in a tensor without elements
    strides[d] = stride;
    stride *= extents[d];
  }
  return strides;
}

}  // namespace detail

template <class I>
void find_positions(KernelContext& context, std::int64_t count, const I* indices, const SparseLayout& layout,
                    std::int64_t* positions) {
  const std::size_t rank = layout.extents.size();
  std::atomic<std::int64_t> first_bad{count};
  context.pool().parallel_for(count, 1 + static_cast<double>(rank), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const I* const index = indices + i * static_cast<std::int64_t>(rank);
      std::uint64_t position = 0;
      bool is_inside = true;
      for (std::size_t d = 0; d < rank; ++d) {
        const auto at = static_cast<std::int64_t>(index[d]);
        is_inside = is_inside && at >= 0 && at < layout.extents[d];
        position += static_cast<std::uint64_t>(at) * static_cast<std::uint64_t>(layout.strides[d]);
      }
      if (!is_inside) {
        std::int64_t found = first_bad.load(std::memory_order_relaxed);
        while (i < found && !first_bad.compare_exchange_weak(found, i, std::memory_order_relaxed)) {
        }
        return;
      }
      if (positions != nullptr) positions[i] = static_cast<std::int64_t>(position);
    }
  });
  const std::int64_t bad = first_bad.load(std::memory_order_relaxed);
  if (bad == count) return;
  context.fail(str_cat("index ", bad, ", ", detail::index_text(indices, bad, rank), ", is outside of the dense shape ",
                       detail::dims_to_string(layout.extents)));
}

void sparse_positions(KernelContext& context, bool exact) {
  dflow::detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  const Tensor<std::int64_t>& indices = context.input<std::int64_t>(0);
  const std::span<const std::int64_t> shape = context.input<std::int64_t>(1).span();
  const std::span<const std::int64_t> target = context.input<std::int64_t>(2).span();
  static_cast<void>(detail::strides_of(context, shape));
  std::vector<std::int64_t> strides = detail::strides_of(context, target);
  const std::size_t before = shape.size() - target.size();
  bool fits = !exact || before == 0;
  for (std::size_t d = 0; d < target.size(); ++d) {
    const bool is_same = target[d] == shape[before + d];
    fits = fits && (is_same || (target[d] == 1 && !exact));
    if (!is_same) strides[d] = 0;
  }
  if (!fits) {
    context.fail(str_cat("a dense tensor of shape ", detail::dims_to_string(target),
                         exact ? " beside a sparse one of shape " : " does not broadcast to a sparse one of shape ",
                         detail::dims_to_string(shape)));
  }
  strides.insert(strides.begin(), before, 0);
  Tensor<std::int64_t>& positions = context.allocate_output<std::int64_t>(0, Shape{indices.dim(0)});
  find_positions(context, indices.dim(0), indices.data(), {shape, strides}, positions.data());
}

namespace detail {

/// Where the rows of input 0 lie in a tensor of the shape of input 1, and the rows by that, equal ones in their order.
struct SortedRows {
  std::vector<std::int64_t> positions;  ///< of each row
  std::vector<std::int64_t> order;      ///< the numbers of the rows
};

SortedRows sorted_rows(KernelContext& context) {
  const Tensor<std::int64_t>& indices = context.input<std::int64_t>(0);
  const Shape& dense = context.input(1).shape();
  if (indices.rank() != 2 || dense != Shape{indices.dim(1)}) dflow::detail::refuse_shapes(context);
  const std::span<const std::int64_t> shape = context.input<std::int64_t>(1).span();
  const auto count = static_cast<std::size_t>(indices.dim(0));
  const std::vector<std::int64_t> strides = strides_of(context, shape);
  SortedRows rows{std::vector<std::int64_t>(count), std::vector<std::int64_t>(count)};
  std::vector<std::int64_t>& positions = rows.positions;
  find_positions(context, indices.dim(0), indices.data(), {shape, strides}, positions.data());
  // Often there is one run of sorted rows, or two of tensors that were joined.
  const auto second = std::is_sorted_until(positions.begin(), positions.end());
  if (std::is_sorted(second, positions.end())) {
    std::size_t a = 0, b = static_cast<std::size_t>(second - positions.begin());
    const std::size_t end_of_a = b;
    for (std::int64_t& next : rows.order) {
      const bool is_of_a = a < end_of_a && (b == count || positions[a] <= positions[b]);
      next = static_cast<std::int64_t>(is_of_a ? a++ : b++);
    }
    return rows;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> placed;
  placed.reserve(count);
  for (const std::int64_t position : positions) {
    placed.emplace_back(position, static_cast<std::int64_t>(placed.size()));
  }
  std::sort(placed.begin(), placed.end());
  std::transform(placed.begin(), placed.end(), rows.order.begin(), [](const auto& row) { return row.second; });
  return rows;
}

}  // namespace detail

void sparse_order(KernelContext& context) {
  const std::vector<std::int64_t> order = detail::sorted_rows(context).order;
  Tensor<std::int64_t>& y = context.allocate_output<std::int64_t>(0, Shape{context.input(0).dim(0)});
  std::copy(order.begin(), order.end(), y.data());
}

void sparse_unique(KernelContext& context) {
  const detail::SortedRows rows = detail::sorted_rows(context);
  const Tensor<std::int64_t>& indices = context.input<std::int64_t>(0);
  std::vector<std::int64_t> firsts;
  firsts.reserve(rows.order.size());
  Tensor<std::int64_t>& slots = context.allocate_output<std::int64_t>(1, Shape{indices.dim(0)});
  const auto position = [&](std::int64_t row) { return rows.positions[static_cast<std::size_t>(row)]; };
  for (const std::int64_t row : rows.order) {
    if (firsts.empty() || position(row) != position(firsts.back())) firsts.push_back(row);
    slots.data()[row] = static_cast<std::int64_t>(firsts.size()) - 1;
  }
  const std::int64_t rank = indices.dim(1);
  std::int64_t* to = context.allocate_output<std::int64_t>(0, {static_cast<std::int64_t>(firsts.size()), rank}).data();
  for (const std::int64_t row : firsts) to = std::copy_n(indices.data() + row * rank, rank, to);
}

namespace detail {

/// y[positions[i]] = values[i] for i in [begin, end); `step` is 0 if one value is for all.
void put_elements(const AnyTensor& values, std::int64_t step, const std::int64_t* positions, std::int64_t begin,
                  std::int64_t end, AnyTensor& y) {
  if (y.dtype() == DType::string) {
    const auto from = values.span<std::string>();
    const auto to = y.span<std::string>();
    for (std::int64_t i = begin; i < end; ++i) {
      to[static_cast<std::size_t>(positions[i])] = from[static_cast<std::size_t>(i * step)];
    }
    return;
  }
  dflow::detail::with_element_bytes(y.dtype(), [&](auto bytes) {
    const auto* const from = static_cast<const std::byte*>(values.raw_data());
    auto* const to = static_cast<std::byte*>(y.raw_data());
    for (std::int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<std::size_t>(positions[i]) * bytes,
                  from + static_cast<std::size_t>(i * step) * bytes, bytes);
    }
  });
}

/// Fails unless each position is behind the one before it.
template <class I>
void check_order(KernelContext& context, const I* indices, std::span<const std::int64_t> positions,
                 std::span<const std::int64_t> shape) {
  const auto bad = std::adjacent_find(positions.begin(), positions.end(), std::greater_equal<>());
  if (bad == positions.end()) return;
  const auto i = static_cast<std::int64_t>(bad - positions.begin()) + 1;
  context.fail(str_cat("index ", i, ", ", index_text(indices, i, shape.size()), ", of dense shape ",
                       dims_to_string(shape),
                       bad[0] == bad[1] ? ", repeats the one before it" : ", is out of order: it comes before index ",
                       bad[0] == bad[1] ? "" : str_cat(i - 1, ", ", index_text(indices, i - 1, shape.size()))));
}

}  // namespace detail

void sparse_to_dense(KernelContext& context, bool validate_indices) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor &indices = context.input(0), &values = context.input(2), &default_value = context.input(3);
  const std::int64_t count = indices.rank() == 0 ? 1 : indices.dim(0);
  AnyTensor& y = context.allocate_output(0, shape);
  context.pool().parallel_for(shape.num_elements(), dflow::detail::copy_cost_ns(y.dtype()),
                              [&](std::int64_t begin, std::int64_t end) {
                                dflow::detail::fill_elements(y.dtype(), end - begin, default_value.raw_data(),
                                                             dflow::detail::element(y, begin));
                              });
  const std::vector<std::int64_t> strides = detail::strides_of(context, shape.dims());
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  visit_dtype<IndexTypes>(indices.dtype(), [&]<class I>() {
    const I* const all = static_cast<const I*>(indices.raw_data());
    find_positions(context, count, all, {shape.dims(), strides}, positions.data());
    if (validate_indices) detail::check_order(context, all, positions, shape.dims());
  });
  const std::int64_t step = values.rank() == 0 ? 0 : 1;
  const auto put = [&](std::int64_t begin, std::int64_t end) {
    detail::put_elements(values, step, positions.data(), begin, end, y);
  };
  if (validate_indices) {
    context.pool().parallel_for(count, 2, put);
  } else {
    put(0, count);
  }
}

}  // namespace dflow::cpu
