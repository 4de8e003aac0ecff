#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/core/memory/allocator.ipp>
#include <dflow/core/memory/buffer.hpp>

#include <memory>
#include <new>

namespace dflow {

static_assert(sizeof(Buffer) == Allocator::default_alignment, "the bytes after the header must be aligned");

struct Buffer::External final : Buffer {
  External(void* data, std::size_t bytes, UniqueFunction<void()> on_release, Lending lending) noexcept
      : Buffer(Header::external, data, bytes, nullptr, nullptr), release(std::move(on_release)) {
    is_read_only_ = lending == Lending::read_only;
    is_borrowed_ = lending != Lending::given || !release;
  }
  UniqueFunction<void()> release;
};

void Buffer::destroy(Buffer* buffer) noexcept {
  if (buffer->header_ == Header::external) {
    auto* external = static_cast<External*>(buffer);
    if (external->release) external->release();
    delete external;
    return;
  }
  void* data = buffer->data_;
  const std::size_t capacity = buffer->capacity_bytes_;
  if (buffer->holds_strings_) std::destroy_n(static_cast<std::string*>(data), capacity / sizeof(std::string));
  BlockOwner* owner = buffer->owner_;
  const Header header = buffer->header_;
  const std::shared_ptr<Allocator> keeper = std::move(buffer->keeper_);  // released after the last use
  if (header == Header::on_heap) {
    delete buffer;
    owner->deallocate(data, capacity);
    return;
  }
  buffer->~Buffer();
  if (header == Header::before) return owner->deallocate(buffer, sizeof(Buffer) + capacity);
  owner->deallocate(data, capacity);
  owner->deallocate(buffer, sizeof(Buffer));
}

namespace detail {

/// True if a header before the bytes would take one page more, and the page matters. Allocators give large blocks in
/// whole pages or multiples of them. With a header, a tensor of 1 MiB would take the next larger size, or would fill
/// alone a huge page that two tensors share. From 2 MiB on it is one page in 512, and worth it: rows of whole pages
/// that each begin a page are read an eighth slower.
inline bool header_takes_a_page(std::size_t bytes) noexcept {
  constexpr std::size_t page_bytes = 4096;
  constexpr std::size_t min_bytes = std::size_t{32} << 10;
  return bytes >= min_bytes && bytes < huge_page_bytes &&
         (bytes - 1) / page_bytes != (bytes - 1 + sizeof(Buffer)) / page_bytes;
}

}  // namespace detail

BufferRef BufferRef::allocate(std::size_t bytes, Allocator& allocator) {
  std::size_t total = 0;
  if (__builtin_add_overflow(bytes, sizeof(Buffer), &total)) [[unlikely]]
    checked_add(bytes, sizeof(Buffer));
  BlockOwner* owner = &allocator.block_owner();
  if (!allocator.is_host_memory()) [[unlikely]] {
    auto header =
        std::unique_ptr<Buffer>(new Buffer(Buffer::Header::on_heap, nullptr, bytes, owner, allocator.keeper()));
    header->data_ = detail::allocate_from(allocator, bytes);
    return BufferRef(header.release());
  }
  if (!detail::header_takes_a_page(bytes)) [[likely]] {
    void* block = detail::allocate_from(allocator, total);
    void* data = static_cast<std::byte*>(block) + sizeof(Buffer);
    return BufferRef(::new (block) Buffer(Buffer::Header::before, data, bytes, owner, allocator.keeper()));
  }
  void* data = detail::allocate_from(allocator, bytes);
  void* header = nullptr;
  try {
    header = detail::allocate_from(allocator, sizeof(Buffer));
  } catch (...) {
    allocator.deallocate(data, bytes);
    throw;
  }
  return BufferRef(::new (header) Buffer(Buffer::Header::apart, data, bytes, owner, allocator.keeper()));
}

BufferRef BufferRef::allocate_strings(std::size_t count, Allocator& allocator) {
  if (!allocator.is_host_memory()) {
    throw_error(Status::invalid_argument(
        str_cat("allocator ", allocator.name(), " cannot hold strings: its memory is not the CPU's")));
  }
  BufferRef strings = allocate(checked_mul(count, sizeof(std::string)), allocator);
  std::uninitialized_value_construct_n(static_cast<std::string*>(strings->data()), count);
  strings->holds_strings_ = true;
  return strings;
}

BufferRef BufferRef::external(void* data, std::size_t bytes, UniqueFunction<void()> release, Lending lending) {
  return BufferRef(new Buffer::External(data, bytes, std::move(release), lending));
}

}  // namespace dflow
