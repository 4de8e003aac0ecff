#pragma once

#include <dflow/core/allocator.hpp>
#include <dflow/kernels/cpu/raw/kernel_cache.hpp>
#include <dflow/kernels/cpu/raw/kernel_cache_state.hpp>

namespace dflow::cpu {

DFLOW_INLINE KernelCache::KernelCache(std::size_t max_scratch_bytes) : state_(std::make_unique<State>()) {
  state_->max_idle_bytes = max_scratch_bytes;
}

DFLOW_INLINE KernelCache::~KernelCache() { clear(); }

DFLOW_INLINE std::size_t KernelCache::scratch_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle_bytes;
}

DFLOW_INLINE std::size_t KernelCache::primitives() const {
  const std::lock_guard lock(state_->mutex);
  return state_->primitives.size();
}

DFLOW_INLINE void KernelCache::clear() {
  std::vector<ScratchBlock> blocks;
  Primitives primitives;
  {
    const std::lock_guard lock(state_->mutex);
    blocks.swap(state_->idle);
    primitives.swap(state_->primitives);
    state_->idle_bytes = 0;
  }
  for (const ScratchBlock& block : blocks) release_pages(block);
}

DFLOW_INLINE ScratchBlock allocate_pages(std::size_t bytes) {
  return {default_cpu_allocator().allocate(bytes, scratch_alignment), bytes};
}

DFLOW_INLINE void release_pages(const ScratchBlock& block) noexcept {
  default_cpu_allocator().deallocate(block.pointer, block.bytes);
}

DFLOW_INLINE Scratch::Scratch(KernelCache* cache, std::size_t bytes) : cache_(cache) {
  if (bytes == 0) return;
  if (cache_ != nullptr) {
    KernelCache::State& state = cache_->state();
    const std::lock_guard lock(state.mutex);
    std::size_t best = state.idle.size();
    for (std::size_t i = 0; i < state.idle.size(); ++i) {
      const std::size_t size = state.idle[i].bytes;
      if (size >= bytes && (best == state.idle.size() || size < state.idle[best].bytes)) best = i;
    }
    if (best < state.idle.size()) {
      block_ = state.idle[best];
      state.idle[best] = state.idle.back();
      state.idle.pop_back();
      state.idle_bytes -= block_.bytes;
      return;
    }
  }
  // Rounding up lets calls of similar sizes share blocks.
  std::size_t rounded = 4096;
  while (rounded < bytes) rounded += rounded / 2 / 64 * 64;
  block_ = allocate_pages(rounded);
}

DFLOW_INLINE Scratch::~Scratch() {
  if (block_.pointer == nullptr) return;
  if (cache_ != nullptr) {
    KernelCache::State& state = cache_->state();
    const std::lock_guard lock(state.mutex);
    if (state.idle_bytes + block_.bytes <= state.max_idle_bytes && state.idle.size() < state.idle.capacity()) {
      state.idle.push_back(block_);
      state.idle_bytes += block_.bytes;
      return;
    }
  }
  release_pages(block_);
}

}  // namespace dflow::cpu
