#pragma once

// The memory of devices in tests: code that touches it from elsewhere dies at once.

#include <dflow/base/status.hpp>
#include <dflow/core/memory/allocator.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>

namespace dflow::testing {

/// Pages that can be read and written only while an Access lives. An allocator that has a protection key (pkeys(7))
/// opens its pages only to the thread of the Access, without a call of the kernel. A thread that this thread starts
/// meanwhile inherits the right. Some processors have no keys, and no processor has more than 15. Without a key all
/// threads see the pages while any Access lives.
///
/// Thread safety: safe. An Access ends on the thread that began it.
class ProofAllocator final : public Allocator {
 public:
  static constexpr std::size_t page_bytes = 4096;

  explicit ProofAllocator(std::size_t capacity_bytes = std::size_t{1} << 32)
      : Allocator(false), capacity_(capacity_bytes) {
    void* region = ::mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) throw Error(Status::resource_exhausted("no address space for the device's memory"));
    region_ = static_cast<std::byte*>(region);
    free_.emplace(0, capacity_);
    key_ = ::pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key_ >= 0 && ::pkey_mprotect(region_, capacity_, PROT_READ | PROT_WRITE, key_) != 0) {
      ::pkey_free(key_);
      key_ = -1;
    }
  }
  ~ProofAllocator() override {
    ::munmap(region_, capacity_);
    if (key_ >= 0) ::pkey_free(key_);
  }

  void* allocate(std::size_t bytes, std::size_t /*alignment*/ = default_alignment) override {
    const std::size_t size = pages(bytes);
    const std::lock_guard lock(mutex_);
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->second < size) continue;
      const std::size_t offset = at->first, rest = at->second - size;
      free_.erase(at);
      if (rest != 0) free_.emplace(offset + size, rest);
      in_use_ += size;
      ++count_;
      if (offset + size > touched_) {
        if (num_open_ != 0) protect(touched_, offset + size, PROT_READ | PROT_WRITE);
        touched_ = offset + size;
      }
      return region_ + offset;
    }
    throw Error(Status::resource_exhausted("the device's memory is full"));
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(block) - region_), size = pages(bytes);
    in_use_ -= size;
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + size == after->first) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free_.emplace(offset, size);
  }
  std::string_view name() const noexcept override { return "proof"; }
  /// Whether an Access opens the pages to its own thread alone.
  bool has_key() const noexcept { return key_ >= 0; }
  AllocatorStats stats() const noexcept override {
    const std::lock_guard lock(mutex_);
    AllocatorStats stats;
    stats.num_allocations = count_;
    stats.bytes_in_use = in_use_;
    stats.peak_bytes_in_use = in_use_;
    return stats;
  }

  class Access {
   public:
    explicit Access(ProofAllocator& of) : of_(of), rights_before_(of.open()) {}
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    ~Access() { of_.close(rights_before_); }

   private:
    ProofAllocator& of_;
    int rights_before_;
  };

 private:
  static std::size_t pages(std::size_t bytes) noexcept {
    return (std::max<std::size_t>(bytes, 1) + page_bytes - 1) / page_bytes * page_bytes;
  }
  void protect(std::size_t from, std::size_t to, int rights) noexcept { ::mprotect(region_ + from, to - from, rights); }
  /// The rights that this thread has had, for close.
  int open() noexcept {
    if (key_ >= 0) {
      const int before = ::pkey_get(key_);
      ::pkey_set(key_, 0);
      return before;
    }
    const std::lock_guard lock(mutex_);
    if (num_open_++ == 0 && touched_ != 0) protect(0, touched_, PROT_READ | PROT_WRITE);
    return 0;
  }
  void close(int rights_before) noexcept {
    if (key_ >= 0) {
      ::pkey_set(key_, static_cast<unsigned>(rights_before));
      return;
    }
    const std::lock_guard lock(mutex_);
    if (--num_open_ == 0 && touched_ != 0) protect(0, touched_, PROT_NONE);
  }

  const std::size_t capacity_;
  std::byte* region_ = nullptr;
  int key_ = -1;  ///< -1: none was left
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  ///< size by offset
  std::size_t touched_ = 0;                  ///< no block has ever lain beyond
  std::size_t in_use_ = 0;
  std::uint64_t count_ = 0;
  int num_open_ = 0;
};

}  // namespace dflow::testing
