#pragma once

#include <dflow/core/memory/allocator.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>

#include <algorithm>
#include <utility>

namespace dflow::cpu {

const PrimitiveCache::Primitive* PrimitiveCache::find(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->primitive;
}

PrimitiveCache::Primitive PrimitiveCache::insert(std::string_view key, Primitive primitive) {
  if (by_key_.contains(key)) return nullptr;
  entries_.push_front({std::string(key), std::move(primitive)});
  by_key_.emplace(entries_.front().key, entries_.begin());
  if (entries_.size() <= max_size_) return nullptr;
  Primitive oldest = std::move(entries_.back().primitive);
  by_key_.erase(entries_.back().key);
  entries_.pop_back();
  return oldest;
}

std::list<PrimitiveCache::Entry> PrimitiveCache::take_all() noexcept {
  by_key_.clear();
  return std::exchange(entries_, {});
}

KernelCache::State::State(Allocator& from, const KernelCacheLimits& limits)
    : allocator(from),
      max_idle_bytes(std::min(limits.scratch_bytes, from.stats().limit_bytes / 8)),
      primitives(limits.primitives) {
  idle.reserve(64);
}

void KernelCache::State::release_idle() noexcept {
  for (;;) {
    ScratchBlock block;
    {
      const std::lock_guard lock(mutex);
      if (idle.empty()) return;
      block = idle.back();
      idle.pop_back();
      idle_bytes -= block.bytes;
    }
    allocator.deallocate(block.pointer, block.bytes);
  }
}

KernelCache::KernelCache(Allocator& allocator, const KernelCacheLimits& limits)
    : state_(std::make_unique<State>(allocator, limits)) {}

KernelCache::~KernelCache() { clear(); }

std::size_t KernelCache::scratch_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle_bytes;
}

std::size_t KernelCache::primitives() const {
  const std::lock_guard lock(state_->mutex);
  return state_->primitives.size();
}

void KernelCache::clear() {
  state_->release_idle();
  std::list<PrimitiveCache::Entry> released;
  const std::lock_guard lock(state_->mutex);
  released = state_->primitives.take_all();
}

Scratch::Scratch(KernelCache* cache, std::size_t bytes) : cache_(cache) {
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
  block_.bytes = rounded;
  if (cache_ == nullptr) {
    block_.pointer = default_cpu_allocator().allocate(rounded, scratch_alignment);
    return;
  }
  KernelCache::State& state = cache_->state();
  try {
    block_.pointer = dflow::detail::allocate_from(state.allocator, rounded, scratch_alignment);
  } catch (const Error&) {
    // Idle blocks count against the allocator's limit, and the exact size may fit even if the rounded size does not.
    state.release_idle();
    block_.bytes = (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    block_.pointer = dflow::detail::allocate_from(state.allocator, block_.bytes, scratch_alignment);
  }
}

Scratch::~Scratch() {
  if (block_.pointer == nullptr) return;
  if (cache_ == nullptr) {
    default_cpu_allocator().deallocate(block_.pointer, block_.bytes);
    return;
  }
  KernelCache::State& state = cache_->state();
  {
    const std::lock_guard lock(state.mutex);
    if (state.idle_bytes + block_.bytes <= state.max_idle_bytes && state.idle.size() < state.idle.capacity()) {
      state.idle.push_back(block_);
      state.idle_bytes += block_.bytes;
      return;
    }
  }
  state.allocator.deallocate(block_.pointer, block_.bytes);
}

}  // namespace dflow::cpu
