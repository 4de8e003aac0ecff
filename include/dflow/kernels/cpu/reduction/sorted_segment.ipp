#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/core/sum_type.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/kernels/cpu/reduction/sorted_segment.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>
#include <dflow/ops/math/binary.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// The rows [begin, end) of one segment.
struct SegmentRun {
  std::int64_t segment, begin, end;
};

/// The runs of equal ids, in memory of the device.
struct SegmentRuns {
  AnyTensor memory;
  std::span<const SegmentRun> all;
};

SegmentRuns segment_runs(const KernelContext& context, const AnyTensor& ids) {
  SegmentRuns runs;
  visit_dtype<IndexTypes>(ids.dtype(), [&]<class I>() {
    const std::span<const I> values = ids.span<I>();
    std::int64_t count = values.empty() ? 0 : 1;
    for (std::size_t i = 1; i < values.size(); ++i) count += values[i] != values[i - 1] ? 1 : 0;
    runs.memory = context.allocate_temporary(DType::int64, {count, 3});
    auto* const run = static_cast<SegmentRun*>(runs.memory.raw_data());
    std::int64_t before = 0, n = 0;
    for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
      const I value = values[i];
      const auto id = static_cast<std::int64_t>(value);
      if (id < 0) context.fail(str_cat("segment_ids[", i, "] = ", id, " is negative"));
      if (id < before) {
        context.fail(str_cat("segment_ids[", i, "] = ", id, " is below the one before it, ", before));
      }
      for (end = i + 1; end < values.size() && values[end] == value;) ++end;
      run[n++] = {id, static_cast<std::int64_t>(i), static_cast<std::int64_t>(end)};
      before = id;
    }
    runs.all = {run, static_cast<std::size_t>(n)};
  });
  return runs;
}

/// The type that rows are combined in.
template <class T>
using SegmentState =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       dflow::detail::SumType<T>>;

/// What the sum of so many rows is divided by.
template <class C>
C divisor_of(SegmentRule rule, std::int64_t count) {
  if constexpr (std::is_floating_point_v<C>) {
    if (rule == SegmentRule::sum_by_root) return static_cast<C>(std::sqrt(static_cast<double>(count)));
  }
  return static_cast<C>(rule == SegmentRule::mean ? count : 1);
}

/// Elements of a row that one thread combines together, and those of them that stay in registers.
inline constexpr std::int64_t segment_block = 64, segment_width = 16;

/// What the runs of data [rows, row] are combined to, as elements [segments, row].
struct SegmentWork {
  std::span<const SegmentRun> runs;
  const std::int64_t* indices;  ///< of the rows, or null: they are taken in order
  std::int64_t row;
  const void* data;
  void* y;
  SegmentRule rule;

  std::int64_t row_of(std::int64_t r) const { return indices == nullptr ? r : indices[r]; }
};

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// `width` elements of a run, from element `first` of the row on: `segment_width` if they are whole, which compilers
/// then keep in registers, else fewer.
template <class Combine, class T, bool is_whole>
void combine_some(const SegmentWork& work, const SegmentRun& run, std::int64_t first, std::int64_t some) {
  const std::int64_t width = is_whole ? segment_width : some;
  using C = SegmentState<T>;
  const T* const data = static_cast<const T*>(work.data) + first;
  T* const y = static_cast<T*>(work.y) + run.segment * work.row + first;
  std::array<C, segment_width> states;
  C* const state = states.data();
  const T* from = data + work.row_of(run.begin) * work.row;
  for (std::int64_t i = 0; i < width; ++i) state[i] = static_cast<C>(from[i]);
  for (std::int64_t r = run.begin + 1; r < run.end; ++r) {
    from = data + work.row_of(r) * work.row;
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < width; ++i) {
      state[i] = Combine::template apply<C>(state[i], static_cast<C>(from[i]));
    }
  }
  if (work.rule == SegmentRule::mean || work.rule == SegmentRule::sum_by_root) {
    const C by = divisor_of<C>(work.rule, run.end - run.begin);
    for (std::int64_t i = 0; i < width; ++i) state[i] = state[i] / by;
  }
  for (std::int64_t i = 0; i < width; ++i) y[i] = static_cast<T>(state[i]);
}
DFLOW_END_INDEPENDENT_LOOPS

template <class Combine, class T>
void combine_run(const SegmentWork& work, const SegmentRun& run, std::int64_t first, std::int64_t end) {
  for (; end - first >= segment_width; first += segment_width) {
    combine_some<Combine, T, true>(work, run, first, segment_width);
  }
  if (first < end) combine_some<Combine, T, false>(work, run, first, end - first);
}

template <class Combine, class T>
void combine_runs(ThreadPool& pool, const SegmentWork& work) {
  const std::int64_t blocks = (work.row + segment_block - 1) / segment_block;
  const auto runs = static_cast<std::int64_t>(work.runs.size());
  if (runs == 0 || blocks == 0) return;
  const double rows = static_cast<double>(work.runs.back().end) / static_cast<double>(runs);
  const double width = static_cast<double>(std::min(work.row, segment_block));
  pool.parallel_for(runs * blocks, rows * width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * segment_block;
      combine_run<Combine, T>(work, work.runs[static_cast<std::size_t>(i / blocks)], first,
                              std::min(first + segment_block, work.row));
    }
  });
}

/// Fails for an index outside [0, limit).
void check_row_indices(KernelContext& context, const AnyTensor& indices, std::int64_t limit) {
  visit_dtype<IndexTypes>(indices.dtype(), [&]<class I>() {
    const I* const values = static_cast<const I*>(indices.raw_data());
    const std::int64_t bad = find_bad_index(indices.num_elements(), values, limit);
    if (bad >= 0) context.fail(str_cat("indices[", bad, "] = ", values[bad], " is outside [0, ", limit, ")"));
  });
}

AnyTensor as_int64(const KernelContext& context, const AnyTensor& indices) {
  if (indices.dtype() == DType::int64) return indices;
  AnyTensor wide = context.allocate_temporary(DType::int64, indices.shape());
  std::copy_n(indices.span<std::int32_t>().data(), indices.num_elements(), static_cast<std::int64_t*>(wide.raw_data()));
  return wide;
}

}  // namespace detail

void reduce_segments(KernelContext& context, SegmentRule rule, bool is_sparse) {
  const AnyTensor &data = context.input(0), &ids = context.input(is_sparse ? 2 : 1);
  dflow::detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  const AnyTensor* const indices = is_sparse ? &context.input(1) : nullptr;
  const detail::SegmentRuns held = detail::segment_runs(context, ids);
  const std::span<const detail::SegmentRun> runs = held.all;
  AnyTensor row_of;
  if (indices != nullptr) {
    detail::check_row_indices(context, *indices, data.dim(0));
    row_of = detail::as_int64(context, *indices);
  }
  const std::optional<std::int64_t> segments =
      runs.empty() ? std::int64_t{0} : try_add(runs.back().segment, std::int64_t{1});
  if (!segments) context.fail("there are more segments than can be counted");
  const Shape row = data.shape().subshape(1, data.rank());
  AnyTensor& y = context.allocate_output(0, Shape{*segments}.concatenated(row));
  const detail::SegmentWork work{runs,
                                 indices == nullptr ? nullptr : static_cast<const std::int64_t*>(row_of.raw_data()),
                                 row.num_elements(),
                                 data.raw_data(),
                                 y.raw_data(),
                                 rule};
  const auto run = [&]<class Combine, class Types>(Combine, Types) {
    visit_dtype<Types>(y.dtype(), [&]<class T>() {
      if (static_cast<std::int64_t>(runs.size()) != *segments) {
        std::fill_n(y.span<T>().data(), y.num_elements(), T(rule == SegmentRule::product ? 1.0f : 0.0f));
      }
      detail::combine_runs<Combine, T>(context.pool(), work);
    });
  };
  switch (rule) {
    case SegmentRule::sum:
    case SegmentRule::mean:
    case SegmentRule::sum_by_root:
      return run(Add(), NumberTypes());
    case SegmentRule::product:
      return run(Mul(), NumberTypes());
    case SegmentRule::minimum:
      return run(Minimum(), RealTypes());
    case SegmentRule::maximum:
      return run(Maximum(), RealTypes());
  }
}

void segment_gradient(KernelContext& context, SegmentRule rule) {
  const AnyTensor &grad = context.input(0), &indices = context.input(1), &ids = context.input(2);
  const Shape shape = dflow::detail::inferred_shape(context);
  const detail::SegmentRuns held = detail::segment_runs(context, ids);
  const std::span<const detail::SegmentRun> runs = held.all;
  detail::check_row_indices(context, indices, shape[0]);
  if (!runs.empty() && runs.back().segment >= grad.dim(0)) {
    context.fail(str_cat("segment_ids[", runs.back().begin, "] = ", runs.back().segment,
                         " is not below the number of rows of grad, ", grad.dim(0)));
  }
  AnyTensor& y = context.allocate_output(0, shape);
  const std::int64_t row = shape.num_elements(1, shape.rank()), count = ids.num_elements();
  visit_dtype<FloatTypes>(y.dtype(), [&]<class T>() {
    using C = dflow::detail::SumType<T>;
    const T* const from = static_cast<const T*>(grad.raw_data());
    std::vector<C> rows(static_cast<std::size_t>(count * row));
    for (const detail::SegmentRun& run : runs) {
      const C by = detail::divisor_of<C>(rule, run.end - run.begin);
      for (std::int64_t at = run.begin * row; at < run.end * row; ++at) {
        rows[static_cast<std::size_t>(at)] = static_cast<C>(from[run.segment * row + at % row]) / by;
      }
    }
    const auto add_to = [&](C* to) {
      std::fill_n(to, y.num_elements(), C(0));
      visit_dtype<IndexTypes>(indices.dtype(), [&]<class I>() {
        static_cast<void>(scatter_rows(context.pool(), ScatterOp::add, shape[0], count, row,
                                       static_cast<const I*>(indices.raw_data()), rows.data(), to,
                                       cpu_options(context)));
      });
    };
    if constexpr (is_16_bit_float<T>) {
      const Widened<T> wide(context.pool(), cpu_options(context), y.num_elements(), nullptr);
      add_to(wide.get());
      wide.narrow_to(static_cast<T*>(y.raw_data()));
    } else {
      add_to(static_cast<T*>(y.raw_data()));
    }
  });
}

}  // namespace dflow::cpu
