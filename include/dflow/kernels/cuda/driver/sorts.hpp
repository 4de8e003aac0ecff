#pragma once

#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

struct MemoryUse;
enum class StreamHandle : std::uintptr_t;

/// Pairs of a key and a value, in the order of the keys; those of equal keys stay in theirs. Keys are below
/// 2^key_bits.
struct SortCall {
  std::int64_t count = 0;  ///< at least 1
  std::int32_t key_bits = 64;
  const std::uint64_t* keys = nullptr;
  const std::int64_t* values = nullptr;
  std::uint64_t* sorted_keys = nullptr;
  std::int64_t* sorted_values = nullptr;
};

/// What dflow asks of CUB, as a thin table of functions: one implementation calls it (`cub_sorts()`), that of tests
/// sorts on the host.
///
/// Functions return at once with an error code, and do not throw.
///
/// Thread safety: all functions may be called from any thread.
class Sorts {
 public:
  Sorts() = default;
  Sorts(const Sorts&) = delete;
  Sorts& operator=(const Sorts&) = delete;
  virtual ~Sorts() = default;

  /// How much memory, aligned to 256, it takes to sort so many pairs.
  virtual ErrorCode sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                                   std::size_t& bytes) noexcept = 0;
  virtual ErrorCode sort_pairs(int device, const SortCall& call, void* workspace, std::size_t workspace_bytes,
                               std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
