#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/raw/kernel_cache.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dflow::cpu {

inline constexpr std::size_t scratch_alignment = 64;

struct ScratchBlock {
  void* pointer = nullptr;
  std::size_t bytes = 0;
};

/// Looks keys up without a copy of them.
struct PrimitiveKeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>()(key); }
};
/// Compiled primitives by kind and shape; the value's type is known to the code that made the key.
using Primitives = std::unordered_map<std::string, std::shared_ptr<const void>, PrimitiveKeyHash, std::equal_to<>>;

struct KernelCache::State {
  State() { idle.reserve(64); }

  std::mutex mutex;
  std::size_t max_idle_bytes = 0;
  std::size_t idle_bytes = 0;
  std::vector<ScratchBlock> idle;
  Primitives primitives;
};

[[nodiscard]] ScratchBlock allocate_pages(std::size_t bytes);
void release_pages(const ScratchBlock& block) noexcept;

/// Memory for the duration of a call, aligned to 64 bytes, from a cache if there is one.
///
/// Thread safety: distinct objects may share a cache.
class Scratch {
 public:
  Scratch(KernelCache* cache, std::size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T> [[nodiscard]] T* as() const { return static_cast<T*>(block_.pointer); }

 private:
  KernelCache* cache_;
  ScratchBlock block_;
};

}  // namespace dflow::cpu

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/raw/kernel_cache.ipp>
#endif
