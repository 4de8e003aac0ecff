#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/memory/allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dflow::cpu {

struct KernelCacheLimits {
  /// Scratch above it is released instead of kept. If the allocator has a limit, it is an eighth of that limit at
  /// most.
  std::size_t scratch_bytes = std::size_t{256} << 20;
  /// Above this number the least recently used primitives are dropped. Shapes that change from call to call (batch or
  /// image sizes) then do not grow the cache without end.
  std::size_t primitives = 1024;
};

/// Memory and code that routines keep between calls: blocks of scratch memory (products pack their operands, fresh
/// pages cost more than the packing) and oneDNN's compiled primitives, one per shape. A device owns one cache and
/// passes it to every kernel.
///
/// Thread safety: safe; concurrent kernels share one cache.
class KernelCache {
 public:
  /// Scratch comes from `allocator`, which must outlive the cache; its limit covers it.
  explicit KernelCache(Allocator& allocator = default_cpu_allocator(), const KernelCacheLimits& limits = {});
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  /// Bytes of idle scratch and number of primitives held.
  [[nodiscard]] std::size_t scratch_bytes() const;
  [[nodiscard]] std::size_t primitives() const;
  /// Releases everything that no running kernel uses. Memory and primitives that are used later are kept again.
  void clear();

  struct State;
  [[nodiscard]] State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace dflow::cpu
