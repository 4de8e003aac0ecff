#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dflow::cpu {

template <class Index>
std::int64_t find_bad_index(std::int64_t count, const Index* indices, std::int64_t limit) {
  // As unsigned numbers, negative ones are too large. Blocks without a bad one take one comparison each.
  using Unsigned = std::make_unsigned_t<Index>;
  constexpr std::int64_t block = 256;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t end = std::min(count, begin + block);
    Unsigned largest = 0;
    for (std::int64_t i = begin; i < end; ++i) largest = std::max(largest, static_cast<Unsigned>(indices[i]));
    if (largest < static_cast<std::uint64_t>(limit)) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if (indices[i] < 0 || static_cast<std::int64_t>(indices[i]) >= limit) return i;
    }
  }
  return -1;
}

/// Position of the first index from `limit` on, or -1.
template <class Index>
std::int64_t find_large_index(std::int64_t count, const Index* indices, std::int64_t limit) {
  const Index* const found =
      std::find_if(indices, indices + count, [&](Index index) { return static_cast<std::int64_t>(index) >= limit; });
  return found == indices + count ? -1 : found - indices;
}

/// Rows are prefetched this many rows ahead of the current row.
inline constexpr std::int64_t rows_ahead = 8;

/// Prefetches the first bytes of a row, at most `lines` cache lines. The address is a number: for an index out of
/// range it would be an invalid pointer.
template <std::size_t lines>
void prefetch_row(const void* table, std::size_t index, std::size_t row_bytes) {
  const std::size_t begin = reinterpret_cast<std::uintptr_t>(table) + index * row_bytes;
  for (std::size_t offset = 0; offset < std::min(row_bytes, 64 * lines); offset += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(begin + offset));
  }
}

/// Copies rows of a size known to the compiler, or of row_bytes where `bytes` is 0.
template <std::size_t bytes, class Index>
void gather_some(std::int64_t begin, std::int64_t end, std::int64_t limit, std::size_t row_bytes, const char* from,
                 const Index* indices, char* to) {
  const std::size_t size = bytes == 0 ? row_bytes : bytes;
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + rows_ahead < end) prefetch_row<1>(from, static_cast<std::size_t>(indices[i + rows_ahead]), size);
    char* row = to + static_cast<std::size_t>(i) * size;
    if (indices[i] < 0 || static_cast<std::int64_t>(indices[i]) >= limit) {
      std::memset(row, 0, size);
    } else {
      std::memcpy(row, from + static_cast<std::size_t>(indices[i]) * size, size);
    }
  }
}

template <class Index>
std::int64_t gather_rows(ThreadPool& pool, std::int64_t outer, std::int64_t limit, std::int64_t count,
                         std::size_t row_bytes, const void* from, const Index* indices, void* to, const CpuOptions&) {
  const std::int64_t bad = find_bad_index(count, indices, limit);
  if (row_bytes == 0) return bad;
  pool.parallel_for(outer * count, 4 + 0.1 * static_cast<double>(row_bytes), [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t o = begin / count;
      const std::int64_t first = begin - o * count;
      const std::int64_t last = std::min(count, first + end - begin);
      const char* source = static_cast<const char*>(from) + static_cast<std::size_t>(o * limit) * row_bytes;
      char* target = static_cast<char*>(to) + static_cast<std::size_t>(o * count) * row_bytes;
      switch (row_bytes) {
        case 4:
          gather_some<4>(first, last, limit, row_bytes, source, indices, target);
          break;
        case 8:
          gather_some<8>(first, last, limit, row_bytes, source, indices, target);
          break;
        case 64:
          gather_some<64>(first, last, limit, row_bytes, source, indices, target);
          break;
        case 256:
          gather_some<256>(first, last, limit, row_bytes, source, indices, target);
          break;
        default:
          gather_some<0>(first, last, limit, row_bytes, source, indices, target);
          break;
      }
      begin += last - first;
    }
  });
  return bad;
}

template <class T>
typename ScatterLoops<loop_t<T>>::Apply scatter_loop(ScatterOp op, CpuLevel level) {
  // Signed integers wrap in sums and products as unsigned integers do; quotients and order differ.
  const auto& ordered = loops<ScatterLoops<loop_t<T>>>(level);
  switch (op) {
    case ScatterOp::divide:
      return ordered.divide;
    case ScatterOp::minimum:
      return ordered.minimum;
    case ScatterOp::maximum:
      return ordered.maximum;
    case ScatterOp::multiply:
      return ordered.multiply;
    case ScatterOp::subtract:
      return ordered.subtract;
    case ScatterOp::add:
      return ordered.add;
    case ScatterOp::assign:
      break;
  }
  return nullptr;
}

/// Sorts keys by their bits from `low` to `high` by a stable radix sort; `spare` has room for as many.
inline void sort_by_bits(std::int64_t count, std::uint64_t* keys, std::uint64_t* spare, int low, int high) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  std::uint64_t* from = keys;
  std::uint64_t* to = spare;
  for (int shift = low; shift < high; shift += digit_bits) {
    std::int64_t start[digits] = {};
    for (std::int64_t i = 0; i < count; ++i) ++start[(from[i] >> shift) & (digits - 1)];
    std::int64_t sum = 0;
    for (std::int64_t& entry : start) {
      const std::int64_t size = entry;
      entry = sum;
      sum += size;
    }
    for (std::int64_t i = 0; i < count; ++i) to[start[(from[i] >> shift) & (digits - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != keys) std::memcpy(keys, from, static_cast<std::size_t>(count) * sizeof(std::uint64_t));
}

/// The positions of indices that are not negative, by ascending index and for equal ones ascending.
template <class Index>
class RowGroups {
 public:
  RowGroups(std::int64_t count, const Index* indices, KernelCache* cache)
      : indices_(indices),
        scratch_(cache, static_cast<std::size_t>(3 * count + 1) * sizeof(std::uint64_t)),
        order_(scratch_.as<std::uint64_t>()),
        starts_(order_ + 2 * count) {
    std::int64_t kept = 0;
    Index largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (indices[i] < 0) continue;
      order_[kept++] = static_cast<std::uint64_t>(i);
      largest = std::max(largest, indices[i]);
    }
    sort(kept, static_cast<std::uint64_t>(largest), order_ + count);
    for (std::int64_t i = 0; i < kept; ++i) {
      if (i == 0 || indices[order_[i]] != indices[order_[i - 1]]) starts_[size_++] = static_cast<std::uint64_t>(i);
    }
    starts_[size_] = static_cast<std::uint64_t>(kept);
  }

  /// Distinct indices.
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] Index index(std::int64_t group) const { return indices_[*begin(group)]; }
  [[nodiscard]] const std::uint64_t* begin(std::int64_t group) const { return order_ + starts_[group]; }
  [[nodiscard]] const std::uint64_t* end(std::int64_t group) const { return order_ + starts_[group + 1]; }
  /// Nanoseconds of a group at `row_ns` a position.
  [[nodiscard]] double group_ns(double row_ns) const {
    return row_ns * static_cast<double>(starts_[size_]) / static_cast<double>(std::max<std::int64_t>(1, size_));
  }

 private:
  /// As keys of 32 bits of index and 32 of position, or, for larger ones, by comparison.
  void sort(std::int64_t count, std::uint64_t largest, std::uint64_t* spare) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    if (count == 0) return;
    if (largest >= limit || order_[count - 1] >= limit) {
      std::stable_sort(order_, order_ + count,
                       [this](std::uint64_t a, std::uint64_t b) { return indices_[a] < indices_[b]; });
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) order_[i] |= static_cast<std::uint64_t>(indices_[order_[i]]) << 32;
    sort_by_bits(count, order_, spare, 32, 32 + static_cast<int>(std::bit_width(largest)));
    for (std::int64_t i = 0; i < count; ++i) order_[i] &= limit - 1;
  }

  const Index* indices_;
  Scratch scratch_;
  std::uint64_t* order_;
  std::uint64_t* starts_;
  std::int64_t size_ = 0;
};

/// Applies rows to one, in order; of 16-bit elements in float, rounded once.
template <class T>
class RowFold {
 public:
  RowFold(ScatterOp op, std::int64_t row_size, CpuLevel level)
      : op_(op), row_size_(row_size), level_(level), apply_(scatter_loop<T>(op, level)) {}

  /// to = to op row(*which) op ... for the positions up to `end`.
  template <class Row>
  void operator()(const Row& row, const std::uint64_t* which, const std::uint64_t* end, T* to) const {
    if constexpr (is_16_bit_float<T>) {
      if (end - which > 1) return fold_in_float(row, which, end, to);
    }
    for (; which != end; ++which) apply_(row_size_, as_loop(to), as_loop(row(*which)));
  }

 private:
  template <class Row>
  void fold_in_float(const Row& row, const std::uint64_t* which, const std::uint64_t* end, T* to) const {
    constexpr std::int64_t tile = 512;
    float all[tile], next[tile];
    const auto apply = scatter_loop<float>(op_, level_);
    const auto& casts = loops<CastLoops<loop_t<T>>>(level_);
    for (std::int64_t first = 0; first < row_size_; first += tile) {
      const std::int64_t n = std::min(tile, row_size_ - first);
      casts.widen(n, as_loop(to + first), all);
      for (const std::uint64_t* i = which; i != end; ++i) {
        casts.widen(n, as_loop(row(*i) + first), next);
        apply(n, all, next);
      }
      casts.narrow(n, all, as_loop(to + first));
    }
  }

  ScatterOp op_;
  std::int64_t row_size_;
  CpuLevel level_;
  typename ScatterLoops<loop_t<T>>::Apply apply_;
};

/// Whether a row after a row loses digits of 16 bits.
constexpr bool rounds(ScatterOp op) {
  return op == ScatterOp::add || op == ScatterOp::subtract || op == ScatterOp::multiply || op == ScatterOp::divide;
}

/// The rows of each target applied in float, and rounded once. All memory that it takes is taken before the first row
/// changes.
template <class T, class Index>
void scatter_in_float(ThreadPool& pool, ScatterOp op, std::int64_t count, std::int64_t row_size, std::int64_t step,
                      double row_ns, const Index* indices, const T* rows, T* to, const CpuOptions& options) {
  const RowGroups groups(count, indices, options.cache);
  const auto row = [&](std::uint64_t i) { return rows + static_cast<std::int64_t>(i) * step; };
  const RowFold<T> fold(op, row_size, options.max_level);
  pool.parallel_for(groups.size(), groups.group_ns(2 * row_ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      fold(row, groups.begin(g), groups.end(g), to + static_cast<std::int64_t>(groups.index(g)) * row_size);
    }
  });
}

/// Calls one_row(i) for each index. Indices of one target are in order. Each thread looks at all indices and takes the
/// indices of its residue class, so that a target has one writer.
template <class Index, class OneRow>
void for_each_target(ThreadPool& pool, std::int64_t count, double row_ns, const Index* indices, const void* to,
                     std::size_t row_bytes, const OneRow& one_row) {
  const auto ask_for = [=](std::int64_t i) { prefetch_row<4>(to, static_cast<std::size_t>(indices[i]), row_bytes); };
  const double cost_ns = static_cast<double>(count) * row_ns;
  const auto shards = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(pool.num_threads())));
  if (shards == 1 || cost_ns < 2 * pool.min_split_ns()) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (i + rows_ahead < count) ask_for(i + rows_ahead);
      one_row(i);
    }
    return;
  }
  pool.parallel_for(shards, cost_ns / static_cast<double>(shards), [&](std::int64_t begin, std::int64_t end) {
    const auto is_mine = [=](std::int64_t i) {
      const std::int64_t shard = static_cast<std::int64_t>(indices[i]) & (shards - 1);
      return shard >= begin && shard < end;
    };
    for (std::int64_t i = 0; i < count; ++i) {
      if (i + rows_ahead < count && is_mine(i + rows_ahead)) ask_for(i + rows_ahead);
      if (is_mine(i)) one_row(i);
    }
  });
}

template <class T, class Index>
std::int64_t scatter_rows(ThreadPool& pool, ScatterOp op, std::int64_t limit, std::int64_t count, std::int64_t row_size,
                          const Index* indices, const T* rows, T* to, const CpuOptions& options,
                          const ScatterRows& how) {
  const std::int64_t bad =
      how.drop_negative ? find_large_index(count, indices, limit) : find_bad_index(count, indices, limit);
  if (bad >= 0 || row_size == 0) return bad;
  const std::int64_t step = how.repeats ? 0 : row_size;
  const double row_ns = 5 + 0.2 * static_cast<double>(row_size) * sizeof(T) / 4;
  if constexpr (is_16_bit_float<T>) {
    if (count > 1 && rounds(op)) {
      scatter_in_float(pool, op, count, row_size, step, row_ns, indices, rows, to, options);
      return -1;
    }
  }
  const auto apply = scatter_loop<T>(op, options.max_level);
  const auto row_bytes = static_cast<std::size_t>(row_size) * sizeof(T);
  const auto one_row = [=, drop_negative = how.drop_negative](std::int64_t i) {
    if (drop_negative && indices[i] < 0) return;
    T* target = to + static_cast<std::int64_t>(indices[i]) * row_size;
    if (apply == nullptr) {
      std::memcpy(static_cast<void*>(target), rows + i * step, row_bytes);
    } else {
      apply(row_size, as_loop(target), as_loop(rows) + i * step);
    }
  };
  for_each_target(pool, count, row_ns, indices, to, row_bytes, one_row);
  return -1;
}

template <class T, class Index>
std::int64_t sum_duplicate_rows(ThreadPool& pool, std::int64_t count, std::int64_t row_size, const Index* indices,
                                const T* rows, Index* unique_indices, T* summed, const CpuOptions& options) {
  if (count == 0) return 0;
  const RowGroups groups(count, indices, options.cache);
  for (std::int64_t g = 0; g < groups.size(); ++g) unique_indices[g] = groups.index(g);
  if (row_size == 0) return groups.size();
  const auto row = [&](std::uint64_t i) { return rows + static_cast<std::int64_t>(i) * row_size; };
  const double row_ns = 5 + 0.3 * static_cast<double>(row_size);
  const RowFold<T> fold(ScatterOp::add, row_size, options.max_level);
  pool.parallel_for(groups.size(), groups.group_ns(row_ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      const std::uint64_t* const first = groups.begin(g);
      T* const sum = summed + g * row_size;
      std::memcpy(static_cast<void*>(sum), row(*first), static_cast<std::size_t>(row_size) * sizeof(T));
      fold(row, first + 1, groups.end(g), sum);
    }
  });
  return groups.size();
}

}  // namespace dflow::cpu
