#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dflow::cpu {

/// What raw kernels keep between calls: blocks of scratch memory (products pack their operands, fresh pages cost more
/// than the packing) and oneDNN's compiled primitives, one per shape. A device owns one and passes it to every kernel.
///
/// Thread safety: safe; concurrent kernels share one cache.
class KernelCache {
 public:
  /// Scratch above `max_scratch_bytes` is released instead of kept.
  explicit KernelCache(std::size_t max_scratch_bytes = std::size_t{256} << 20);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  /// Bytes of idle scratch and number of primitives held.
  [[nodiscard]] std::size_t scratch_bytes() const;
  [[nodiscard]] std::size_t primitives() const;
  /// Releases everything that no running kernel uses.
  void clear();

  struct State;
  [[nodiscard]] State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace dflow::cpu

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/raw/kernel_cache_state.hpp>
#endif
