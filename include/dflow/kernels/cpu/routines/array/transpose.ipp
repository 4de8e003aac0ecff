#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace dflow::cpu {

/// The loops of a copy, outermost first, with strides in elements.
struct CopyNest {
  std::size_t rank = 0;
  std::int64_t dims[max_copy_rank] = {};
  std::int64_t from[max_copy_rank] = {};
  std::int64_t to[max_copy_rank] = {};

  /// Adds an innermost loop, as part of the last one where both walk on without a gap.
  void push(std::int64_t dim, std::int64_t from_stride, std::int64_t to_stride) {
    if (dim == 1) return;
    if (rank > 0 && from[rank - 1] == from_stride * dim && to[rank - 1] == to_stride * dim) {
      dims[rank - 1] *= dim;
      from[rank - 1] = from_stride;
      to[rank - 1] = to_stride;
      return;
    }
    dims[rank] = dim;
    from[rank] = from_stride;
    to[rank] = to_stride;
    ++rank;
  }
  void erase(std::size_t loop) {
    for (std::size_t i = loop; i + 1 < rank; ++i) dims[i] = dims[i + 1], from[i] = from[i + 1], to[i] = to[i + 1];
    --rank;
  }
  /// Every iteration begins to write at a multiple of `elements`.
  [[nodiscard]] bool starts_lines(std::int64_t elements) const {
    for (std::size_t i = 0; i < rank; ++i) {
      if (to[i] % elements != 0) return false;
    }
    return true;
  }
  /// Number of iterations of the loops outside the innermost `inner` ones.
  [[nodiscard]] std::int64_t outer_count(std::size_t inner) const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + inner < rank; ++i) count *= dims[i];
    return count;
  }
};

/// A result of at least this many bytes is written past the caches: it is larger than a core's own cache.
inline constexpr std::int64_t streamed_bytes = std::int64_t{4} << 20;

/// A position in the outer loops of a nest.
struct CopyPosition {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t index[max_copy_rank] = {};
  std::size_t outer;  ///< number of loops

  CopyPosition(const CopyNest& nest, std::size_t inner, std::int64_t iteration) : outer(nest.rank - inner) {
    for (std::size_t i = outer; i-- > 0;) {
      index[i] = iteration % nest.dims[i];
      iteration /= nest.dims[i];
      from += index[i] * nest.from[i];
      to += index[i] * nest.to[i];
    }
  }
  /// Goes on to the next iteration without a division: a run may be as short as an element.
  void advance(const CopyNest& nest) {
    for (std::size_t i = outer; i-- > 0;) {
      from += nest.from[i];
      to += nest.to[i];
      if (++index[i] < nest.dims[i]) return;
      from -= nest.dims[i] * nest.from[i];
      to -= nest.dims[i] * nest.to[i];
      index[i] = 0;
    }
  }
};

/// Type-erased CopyLoops of one element size.
struct SizedCopy {
  void (*transpose)(std::int64_t, std::int64_t, const void*, std::int64_t, void*, std::int64_t, bool);
  void (*strided)(std::int64_t, const void*, std::int64_t, void*, std::int64_t);
};
template <int bytes>
SizedCopy sized_copy(CpuLevel level) {
  const auto& table = loops<CopyLoops<bytes>>(level);
  return {table.transpose, table.strided};
}
inline SizedCopy copy_of_size(std::size_t bytes, CpuLevel level) {
  switch (bytes) {
    case 1:
      return sized_copy<1>(level);
    case 2:
      return sized_copy<2>(level);
    case 4:
      return sized_copy<4>(level);
    case 8:
      return sized_copy<8>(level);
    default:
      assert(bytes == 16);
      return sized_copy<16>(level);
  }
}

/// The arguments that run_copy and its variants share.
struct NestCopy {
  ThreadPool& pool;
  std::int64_t size;  ///< bytes of an element
  const char* from;
  char* to;
  const CpuOptions& options;

  double element_ns() const { return 0.1 * static_cast<double>(size); }

  /// Both sides walk without gaps through the last loop.
  void runs(const CopyNest& nest) const;
  /// Two loops that walk without gaps, one through each side, in squares.
  void squares(CopyNest nest, std::size_t reads_on, std::size_t writes_on) const;
  /// One element after the other of loop `inner`.
  void elements(CopyNest nest, std::size_t inner) const;
};

inline void NestCopy::runs(const CopyNest& nest) const {
  const std::size_t last = nest.rank - 1;
  if (nest.rank == 1) {
    pool.parallel_for(
        nest.dims[0], element_ns(),
        [&](std::int64_t begin, std::int64_t end) {
          std::memcpy(to + begin * size, from + begin * size, static_cast<std::size_t>((end - begin) * size));
        },
        std::max<std::int64_t>(1, 4096 / size));
    return;
  }
  const auto run = static_cast<std::size_t>(size * nest.dims[last]);
  pool.parallel_for(nest.outer_count(1), 5 + element_ns() * static_cast<double>(nest.dims[last]),
                    [&](std::int64_t begin, std::int64_t end) {
                      CopyPosition at(nest, 1, begin);
                      for (std::int64_t i = begin; i < end; ++i, at.advance(nest)) {
                        std::memcpy(to + at.to * size, from + at.from * size, run);
                      }
                    });
}

inline void NestCopy::squares(CopyNest nest, std::size_t reads_on, std::size_t writes_on) const {
  const SizedCopy copy = copy_of_size(static_cast<std::size_t>(size), options.max_level);
  const std::int64_t count = nest.outer_count(0);
  const std::int64_t columns = nest.dims[reads_on], rows = nest.dims[writes_on];
  const std::int64_t from_stride = nest.from[writes_on], to_stride = nest.to[reads_on];
  nest.erase(std::max(reads_on, writes_on));
  nest.erase(std::min(reads_on, writes_on));
  const std::int64_t tile_columns = std::min<std::int64_t>(columns, 1024 / size);
  const std::int64_t tile_rows = std::min<std::int64_t>(rows, 1024 / size);
  const bool stream = count * size >= streamed_bytes && reinterpret_cast<std::uintptr_t>(to) % 64 == 0 &&
                      to_stride * size % 64 == 0 && nest.starts_lines(64 / size);
  const std::int64_t across = (columns + tile_columns - 1) / tile_columns;
  const std::int64_t down = (rows + tile_rows - 1) / tile_rows;
  pool.parallel_for(nest.outer_count(0) * across * down,
                    10 + 2 * element_ns() * static_cast<double>(tile_rows * tile_columns),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const CopyPosition at(nest, 0, i / across / down);
                        const std::int64_t r = i / across % down * tile_rows;
                        const std::int64_t c = i % across * tile_columns;
                        copy.transpose(std::min(tile_rows, rows - r), std::min(tile_columns, columns - c),
                                       from + (at.from + r * from_stride + c) * size, from_stride,
                                       to + (at.to + c * to_stride + r) * size, to_stride, stream);
                      }
                    });
}

inline void NestCopy::elements(CopyNest nest, std::size_t inner) const {
  const SizedCopy copy = copy_of_size(static_cast<std::size_t>(size), options.max_level);
  const std::size_t last = nest.rank - 1;
  std::swap(nest.dims[inner], nest.dims[last]);
  std::swap(nest.from[inner], nest.from[last]);
  std::swap(nest.to[inner], nest.to[last]);
  pool.parallel_for(nest.outer_count(1), 10 + 5 * element_ns() * static_cast<double>(nest.dims[last]),
                    [&](std::int64_t begin, std::int64_t end) {
                      CopyPosition at(nest, 1, begin);
                      for (std::int64_t i = begin; i < end; ++i, at.advance(nest)) {
                        copy.strided(nest.dims[last], from + at.from * size, nest.from[last], to + at.to * size,
                                     nest.to[last]);
                      }
                    });
}

/// If the last loop's run is as long as one element and every path goes by whole runs, makes it one element and
/// returns true.
inline bool merge_last_run(CopyNest& nest, std::size_t& bytes) {
  const std::size_t last = nest.rank - 1;
  const std::size_t run = bytes * static_cast<std::size_t>(nest.dims[last]);
  if (nest.rank == 1 || run > 16 || (run & (run - 1)) != 0) return false;
  for (std::size_t i = 0; i < last; ++i) {
    if (nest.from[i] % nest.dims[last] != 0 || nest.to[i] % nest.dims[last] != 0) return false;
  }
  for (std::size_t i = 0; i < last; ++i) {
    nest.from[i] /= nest.dims[last];
    nest.to[i] /= nest.dims[last];
  }
  nest.erase(last);
  bytes = run;
  return true;
}

/// Copies the elements that a nest describes.
inline void run_copy(ThreadPool& pool, std::size_t bytes, CopyNest nest, const char* from, char* to,
                     const CpuOptions& options) {
  const auto ends_in_a_run = [&nest] { return nest.from[nest.rank - 1] == 1 && nest.to[nest.rank - 1] == 1; };
  while (nest.rank > 0 && ends_in_a_run() && merge_last_run(nest, bytes)) {
  }
  if (nest.rank == 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  const NestCopy copy{pool, static_cast<std::int64_t>(bytes), from, to, options};
  if (ends_in_a_run()) return copy.runs(nest);
  std::size_t reads_on = nest.rank, writes_on = nest.rank;
  for (std::size_t i = 0; i < nest.rank; ++i) {
    if (nest.from[i] == 1) reads_on = i;
    if (nest.to[i] == 1) writes_on = i;
  }
  const bool both_walk = reads_on < nest.rank && writes_on < nest.rank && reads_on != writes_on;
  if (both_walk && nest.dims[reads_on] > 1 && nest.from[writes_on] > 1 && nest.to[reads_on] > 1) {
    return copy.squares(nest, reads_on, writes_on);
  }
  // The innermost loop is the loop that writes without gaps, if there is one.
  copy.elements(nest, writes_on < nest.rank ? writes_on : nest.rank - 1);
}

void transpose(ThreadPool& pool, std::size_t element_bytes, std::span<const std::int64_t> dims,
               std::span<const std::int32_t> permutation, const void* x, void* y, const CpuOptions& options) {
  assert(dims.size() <= max_copy_rank && permutation.size() == dims.size());
  std::int64_t strides[max_copy_rank];
  std::int64_t count = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = count;
    count *= dims[i];
  }
  if (count == 0) return;
  CopyNest nest;
  std::int64_t to_stride = count;
  for (const std::int32_t axis : permutation) {
    const std::int64_t dim = dims[static_cast<std::size_t>(axis)];
    to_stride /= dim;
    nest.push(dim, strides[static_cast<std::size_t>(axis)], to_stride);
  }
  run_copy(pool, element_bytes, nest, static_cast<const char*>(x), static_cast<char*>(y), options);
}

void strided_copy(ThreadPool& pool, std::size_t element_bytes, std::span<const std::int64_t> dims, const void* from,
                  std::span<const std::int64_t> from_strides, void* to, std::span<const std::int64_t> to_strides,
                  const CpuOptions& options) {
  assert(dims.size() <= max_copy_rank && from_strides.size() == dims.size() && to_strides.size() == dims.size());
  CopyNest nest;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return;
    nest.push(dims[i], from_strides[i], to_strides[i]);
  }
  run_copy(pool, element_bytes, nest, static_cast<const char*>(from), static_cast<char*>(to), options);
}

}  // namespace dflow::cpu
