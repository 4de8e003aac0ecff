#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>

#include <cstddef>
#include <list>
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

/// Compiled primitives by kind and shape, the last used first. The code that made the key knows the value's type. Not
/// thread-safe.
class PrimitiveCache {
 public:
  using Primitive = std::shared_ptr<const void>;
  struct Entry {
    std::string key;
    Primitive primitive;
  };

  explicit PrimitiveCache(std::size_t max_size) : max_size_(max_size) {}

  [[nodiscard]] std::size_t size() const { return by_key_.size(); }
  /// Null if there is none; a pointer to null if it is known that none can be made.
  const Primitive* find(std::string_view key);
  /// Keeps the first primitive of a key. Returns the dropped primitive, to be destroyed without a lock.
  Primitive insert(std::string_view key, Primitive primitive);
  /// Everything, to be destroyed without a lock.
  std::list<Entry> take_all() noexcept;

 private:
  std::list<Entry> entries_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;  ///< the keys of `entries_`
  std::size_t max_size_;
};

struct KernelCache::State {
  State(Allocator& from, const KernelCacheLimits& limits);

  Allocator& allocator;
  std::mutex mutex;
  std::size_t max_idle_bytes = 0;
  std::size_t idle_bytes = 0;
  std::vector<ScratchBlock> idle;  ///< never grows past the room it has from the start
  PrimitiveCache primitives;

  /// Gives all idle scratch back.
  void release_idle() noexcept;
};

/// Memory for the duration of a call, aligned to 64 bytes, from a cache if there is one.
///
/// Thread safety: distinct objects may share a cache.
/// Errors: ResourceExhausted, after all idle scratch was given back.
class Scratch {
 public:
  Scratch(KernelCache* cache, std::size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(block_.pointer);
  }

 private:
  KernelCache* cache_;
  ScratchBlock block_;
};

}  // namespace dflow::cpu
