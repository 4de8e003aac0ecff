#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cpu {

/// Most dimensions that transpose and strided_copy take.
inline constexpr std::size_t max_copy_rank = 8;

/// y = x with its axes permuted: dimension i of y is dimension permutation[i] of x. Elements are element_bytes (1, 2,
/// 4, 8 or 16) of trivially copyable memory. x: dims, row-major; y overlaps nothing of x.
void transpose(ThreadPool& pool, std::size_t element_bytes, std::span<const std::int64_t> dims,
               std::span<const std::int32_t> permutation, const void* x, void* y, const CpuOptions& options = {});

/// to[i . to_strides] = from[i . from_strides] for every index i below dims. Strides are in elements and may be
/// negative or, for `from`, 0 (broadcast). Slices, reversals, concatenations and tilings are copies of this kind. The
/// elements of `to` are distinct and overlap nothing of `from`.
void strided_copy(ThreadPool& pool, std::size_t element_bytes, std::span<const std::int64_t> dims, const void* from,
                  std::span<const std::int64_t> from_strides, void* to, std::span<const std::int64_t> to_strides,
                  const CpuOptions& options = {});

}  // namespace dflow::cpu
