#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/memory/cuda_allocator.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace dflow::cuda {

namespace detail {

/// The alignment of cudaMalloc.
inline constexpr std::size_t block_alignment = 256;

inline void check_alignment(std::size_t alignment, const char* name) {
  if (alignment > block_alignment) {
    throw_error(Status::invalid_argument(
        str_cat("the ", name, " allocator aligns to ", block_alignment, " bytes, not to ", alignment)));
  }
}

}  // namespace detail

CudaAllocator::CudaAllocator(std::shared_ptr<DeviceCore> core, CudaAllocatorOptions options)
    : Allocator(false), core_(std::move(core)), options_(options) {
  stats_.limit_bytes = options_.limit_bytes;
}

CudaAllocator::~CudaAllocator() { release_cached(); }

std::size_t CudaAllocator::size_class(std::size_t bytes) noexcept {
  constexpr std::size_t smallest = 512;
  if (bytes <= smallest) return smallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  const std::size_t rounded = (bytes + step - 1) / step * step;
  return rounded < bytes ? bytes : rounded;  // of sizes that no memory has
}

void* CudaAllocator::pop(Blocks& blocks, std::size_t size) noexcept {
  const auto found = blocks.find(size);
  if (found == blocks.end()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) blocks.erase(found);
  return block;
}

/// False if there is no memory to note it.
bool CudaAllocator::push(Blocks& blocks, std::size_t size, void* block) noexcept {
  try {
    blocks[size].push_back(block);
    return true;
  } catch (...) {
    if (const auto found = blocks.find(size); found != blocks.end() && found->second.empty()) blocks.erase(found);
    return false;
  }
}

void* CudaAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  detail::check_alignment(alignment, "cuda");
  const std::size_t size = size_class(bytes);
  DeviceCore::Capturing* const work = core_->capturing();
  if (work == nullptr) return allocate_block(bytes, size);
  work->expect();
  try {
    void* const block = allocate_block(bytes, size);
    work->note(block);
    return block;
  } catch (...) {
    work->give_up();
    throw;
  }
}

void* CudaAllocator::allocate_block(std::size_t bytes, std::size_t size) {
  std::unique_lock lock(mutex_);
  void* block = nullptr;
  ErrorCode code = find(size, block);
  // One more graph is not worth the loss of the graphs that exist.
  if (code == ErrorCode::out_of_memory && reclaim_ != nullptr && core_->capturing() == nullptr) {
    lock.unlock();
    reclaim_();
    lock.lock();
    code = find(size, block);
  }
  if (code != ErrorCode::ok) {
    if (code != ErrorCode::out_of_memory) throw_error(core_->status_of(code, str_cat("allocating ", bytes, " bytes")));
    throw_error(Status::resource_exhausted(
        str_cat("GPU ", core_->device(), " has no ", bytes, " bytes: ", stats_.bytes_in_use, " are in use",
                options_.limit_bytes == std::numeric_limits<std::size_t>::max()
                    ? std::string()
                    : std::string(str_cat(" of a limit of ", options_.limit_bytes)))));
  }
  ++stats_.num_allocations;
  stats_.bytes_in_use += size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block;
}

/// Finds a block, with the mutex held: a cached block if there is one.
ErrorCode CudaAllocator::find(std::size_t size, void*& block) {
  DeviceCore::Capturing* const work = core_->capturing();
  if (work == nullptr || work->keeps_next()) {
    block = pop(cached_, size);
    if (block == nullptr) return take(size, block);
    stats_.bytes_cached -= size;
    return ErrorCode::ok;
  }
  block = find_shared(size);
  if (block == nullptr) {
    block = pop(cached_, size);
    if (block != nullptr) {
      stats_.bytes_cached -= size;
    } else if (const ErrorCode code = take(size, block); code != ErrorCode::ok) {
      return code;
    }
    try {
      shared_.emplace(block, SharedBlock{size, 0, false});
    } catch (...) {
      core_->driver().free(core_->device(), block, core_->memory_order());
      throw;
    }
  }
  SharedBlock& shared = shared_.at(block);
  try {
    if (work->shared().insert(block).second) ++shared.users;
  } catch (...) {
    if (shared.users == 0) {
      shared_.erase(block);
      core_->driver().free(core_->device(), block, core_->memory_order());
    }
    throw;
  }
  if (std::exchange(shared.is_free, false)) stats_.bytes_cached -= size;
  return ErrorCode::ok;
}

void* CudaAllocator::find_shared(std::size_t size) noexcept {
  for (const auto& [block, shared] : shared_) {
    if (shared.is_free && shared.size == size) return block;
  }
  return nullptr;
}

/// Takes a block from the driver, within the limit. If it helps, the cached blocks are given back first.
ErrorCode CudaAllocator::take(std::size_t size, void*& block) {
  const auto fits = [&] {
    const std::size_t taken = stats_.bytes_in_use + stats_.bytes_cached;
    return size <= options_.limit_bytes && taken <= options_.limit_bytes - size;
  };
  ErrorCode code = ErrorCode::out_of_memory;
  if (fits()) code = core_->driver().allocate(core_->device(), size, core_->memory_order(), block);
  if (code != ErrorCode::out_of_memory || cached_.empty()) return code;
  release_cached();
  return fits() ? core_->driver().allocate(core_->device(), size, core_->memory_order(), block) : code;
}

void CudaAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  const std::size_t size = size_class(bytes);
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= size;
  if (const auto found = shared_.find(block); found != shared_.end()) {
    found->second.is_free = true;
    stats_.bytes_cached += size;
  } else {
    cache_or_free(block, size);
  }
}

void CudaAllocator::cache_or_free(void* block, std::size_t size) noexcept {
  if (stats_.bytes_cached + size <= options_.max_cached_bytes && push(cached_, size, block)) {
    stats_.bytes_cached += size;
  } else {
    core_->driver().free(core_->device(), block, core_->memory_order());
  }
}

void CudaAllocator::end_shared(const std::set<void*>& blocks) noexcept {
  const std::lock_guard lock(mutex_);
  for (void* block : blocks) {
    const auto found = shared_.find(block);
    if (--found->second.users != 0) continue;
    // A block that is in use is like any other from now on.
    const SharedBlock ended = found->second;
    shared_.erase(found);
    if (!ended.is_free) continue;
    stats_.bytes_cached -= ended.size;
    cache_or_free(block, ended.size);
  }
}

bool CudaAllocator::is_shared(const void* block) const noexcept {
  const std::lock_guard lock(mutex_);
  return shared_.contains(const_cast<void*>(block));
}

void CudaAllocator::reclaim() {
  if (reclaim_ != nullptr) reclaim_();
  trim();
}

AllocatorStats CudaAllocator::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void CudaAllocator::trim() noexcept {
  const std::lock_guard lock(mutex_);
  release_cached();
}

void CudaAllocator::release_cached() noexcept {
  for (const auto& [size, blocks] : cached_) {
    for (void* block : blocks) core_->driver().free(core_->device(), block, core_->memory_order());
    stats_.bytes_cached -= size * blocks.size();
  }
  cached_.clear();
}

void* PinnedAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  detail::check_alignment(alignment, "pinned");
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* block = nullptr;
  require_ok(driver_->allocate_pinned(size, block),
             str_cat("allocating ", bytes, " bytes of host memory pinned for GPUs"));
  const std::lock_guard lock(mutex_);
  try {
    blocks_.emplace(static_cast<const std::byte*>(block), size);
  } catch (...) {
    driver_->free_pinned(block);
    throw;
  }
  ++stats_.num_allocations;
  stats_.bytes_in_use += size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block;
}

void PinnedAllocator::deallocate(void* block, std::size_t) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(static_cast<const std::byte*>(block));
    stats_.bytes_in_use -= found->second;
    blocks_.erase(found);
  }
  driver_->free_pinned(block);
}

AllocatorStats PinnedAllocator::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

bool PinnedAllocator::contains(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return false;
  --after;
  return at < after->first + after->second;
}

}  // namespace dflow::cuda
