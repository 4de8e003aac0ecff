#pragma once

#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

struct MemoryUse;
enum class StreamHandle : std::uintptr_t;

/// Sorts pairs of a key and a value by key. The sort is stable: pairs with equal keys keep their order. Keys are
/// below 2^key_bits.
struct SortCall {
  std::int64_t count = 0;  ///< at least 1
  std::int32_t key_bits = 64;
  const std::uint64_t* keys = nullptr;
  const std::int64_t* values = nullptr;
  std::uint64_t* sorted_keys = nullptr;
  std::int64_t* sorted_values = nullptr;
};

/// The functions of CUB that dflow uses, as a thin table: `cub_sorts()` calls CUB, and the tests have a table that
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

  /// The memory, aligned to 256, that a sort of this many pairs takes.
  virtual ErrorCode sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                                   std::size_t& bytes) noexcept = 0;
  virtual ErrorCode sort_pairs(int device, const SortCall& call, void* workspace, std::size_t workspace_bytes,
                               std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
