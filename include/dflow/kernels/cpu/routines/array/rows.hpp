#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow::cpu {

/// Position of the first index outside [0, limit), or -1. Index: int32, int64.
template <class Index>
[[nodiscard]] std::int64_t find_bad_index(std::int64_t count, const Index* indices, std::int64_t limit);

/// to[o, i, :] = from[o, indices[i], :]; from [outer, limit, row], to [outer, count, row], rows of row_bytes. Returns
/// -1, or the position of the first index outside [0, limit); the rows of all indices outside are set to zero bytes.
template <class Index>
[[nodiscard]] std::int64_t gather_rows(ThreadPool& pool, std::int64_t outer, std::int64_t limit, std::int64_t count,
                                       std::size_t row_bytes, const void* from, const Index* indices, void* to,
                                       const CpuOptions& options = {});

enum class ScatterOp : std::uint8_t { assign, add, subtract, multiply, divide, minimum, maximum };

struct ScatterRows {
  bool drop_negative = false;  ///< rows of negative indices are left out
  bool repeats = false;        ///< there is one row [row_size], for every index
};

/// to[indices[i], :] = to[indices[i], :] op rows[i, :] for i = 0, 1, ...; to [limit, row_size], rows [count,
/// row_size]. A repeated index is applied in order of i for any number of threads; 16-bit floats are rounded once,
/// after its last row. Returns -1, or the position of the first index outside [0, limit), and then `to` is unchanged.
/// T: every numeric type; minimum and maximum not for complex types.
template <class T, class Index>
[[nodiscard]] std::int64_t scatter_rows(ThreadPool& pool, ScatterOp op, std::int64_t limit, std::int64_t count,
                                        std::int64_t row_size, const Index* indices, const T* rows, T* to,
                                        const CpuOptions& options = {}, const ScatterRows& how = {});

/// Sums the rows of equal index: unique_indices [<= count] holds each index once, ascending, and summed [<= count,
/// row_size] its rows added in order of i. Returns how many there are. T: float, double, Half, BFloat16 (both added in
/// float and rounded once).
template <class T, class Index>
[[nodiscard]] std::int64_t sum_duplicate_rows(ThreadPool& pool, std::int64_t count, std::int64_t row_size,
                                              const Index* indices, const T* rows, Index* unique_indices, T* summed,
                                              const CpuOptions& options = {});

}  // namespace dflow::cpu
