#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/core/buffer.hpp>

#include <memory>
#include <new>

namespace dflow {

static_assert(sizeof(Buffer) == Allocator::default_alignment, "the bytes after the header must be aligned");

struct Buffer::External final : Buffer {
  External(void* data, std::size_t bytes, UniqueFunction<void()> on_release, bool is_read_only)
      : Buffer(Kind::external, data, bytes, nullptr), release(std::move(on_release)) {
    is_read_only_ = is_read_only;
  }
  UniqueFunction<void()> release;
};

DFLOW_INLINE void Buffer::destroy(Buffer* buffer) noexcept {
  switch (buffer->kind_) {
    case Kind::strings:
      std::destroy_n(static_cast<std::string*>(buffer->data_), buffer->capacity_bytes_ / sizeof(std::string));
      [[fallthrough]];
    case Kind::plain: {
      Allocator* allocator = buffer->allocator_;
      const std::shared_ptr<Allocator> keeper = std::move(buffer->keeper_);  // released after the last use
      const std::size_t bytes = sizeof(Buffer) + buffer->capacity_bytes_;
      buffer->~Buffer();
      allocator->deallocate(buffer, bytes);
      return;
    }
    case Kind::separate: {
      const std::shared_ptr<Allocator> keeper = std::move(buffer->keeper_);
      buffer->allocator_->deallocate(buffer->data_, buffer->capacity_bytes_);
      delete buffer;
      return;
    }
    case Kind::external: {
      auto* external = static_cast<External*>(buffer);
      if (external->release) external->release();
      delete external;
      return;
    }
  }
}

DFLOW_INLINE BufferRef BufferRef::allocate(std::size_t bytes, Allocator& allocator) {
  if (!allocator.is_host_memory()) [[unlikely]] {
    auto header = std::unique_ptr<Buffer>(new Buffer(Buffer::Kind::separate, nullptr, bytes, &allocator));
    header->data_ = allocator.allocate(bytes);
    return BufferRef(header.release());
  }
  std::size_t total = 0;
  if (__builtin_add_overflow(bytes, sizeof(Buffer), &total)) [[unlikely]]
    checked_add(bytes, sizeof(Buffer));
  void* block = allocator.allocate(total);
  return BufferRef(::new (block)
                       Buffer(Buffer::Kind::plain, static_cast<std::byte*>(block) + sizeof(Buffer), bytes, &allocator));
}

DFLOW_INLINE BufferRef BufferRef::allocate_strings(std::size_t count, Allocator& allocator) {
  if (!allocator.is_host_memory()) {
    throw_error(Code::invalid_argument,
                str_cat("allocator ", allocator.name(), " cannot hold strings: its memory is not the CPU's"));
  }
  BufferRef strings = allocate(checked_mul(count, sizeof(std::string)), allocator);
  std::uninitialized_value_construct_n(static_cast<std::string*>(strings->data()), count);
  strings->kind_ = Buffer::Kind::strings;
  return strings;
}

DFLOW_INLINE BufferRef BufferRef::external(void* data, std::size_t bytes, UniqueFunction<void()> release,
                                           bool is_read_only) {
  return BufferRef(new Buffer::External(data, bytes, std::move(release), is_read_only));
}

}  // namespace dflow
