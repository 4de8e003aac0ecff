#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/core/allocator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace dflow {

/// The bytes behind one or more tensors, with a count of the handles to them. Of owned host memory, this header lies in
/// the same allocation, right before the bytes.
///
/// Thread safety: the count is atomic; distinct handles may be used from distinct threads. The bytes themselves are
/// guarded by nothing: whoever shares them does not write them.
class alignas(64) Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  /// Lent by a caller that does not want it written.
  bool is_read_only() const noexcept { return is_read_only_; }
  /// Null for memory that the library does not own.
  Allocator* allocator() const noexcept { return allocator_; }
  /// Keeps the allocator alive as long as this buffer: what a session does for tensors that may outlive it. Later calls
  /// change nothing. Thread safety: may be called by any holder of a handle, at any time.
  void keep_alive(const std::shared_ptr<Allocator>& owner) noexcept {
    if (is_kept_.load(std::memory_order_relaxed) || is_kept_.exchange(true, std::memory_order_relaxed)) return;
    keeper_ = owner;
  }

 private:
  friend class BufferRef;

  enum class Kind : std::uint8_t {
    plain,     ///< header and bytes in one allocation
    strings,   ///< the same, holding std::string objects
    separate,  ///< header on the heap, bytes from the allocator
    external,  ///< bytes of somebody else; the header is an ExternalBuffer
  };
  struct External;

  Buffer(Kind kind, void* data, std::size_t capacity_bytes, Allocator* allocator) noexcept
      : kind_(kind), data_(data), capacity_bytes_(capacity_bytes), allocator_(allocator) {}

  void acquire() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// The holder of the only handle needs no atomic decrement: nobody else can make a second one.
  void release() noexcept {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }
  static void destroy(Buffer* buffer) noexcept;

  std::atomic<std::int32_t> refs_{1};
  Kind kind_;
  bool is_read_only_ = false;
  std::atomic<bool> is_kept_{false};
  void* data_;
  std::size_t capacity_bytes_;
  Allocator* allocator_;
  std::shared_ptr<Allocator> keeper_;
};

/// A handle to a Buffer: copies share it, the last one to go frees it. Null by default.
class BufferRef {
 public:
  constexpr BufferRef() noexcept = default;
  BufferRef(const BufferRef& other) noexcept : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->acquire();
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(const BufferRef& other) noexcept {
    if (other.buffer_ != nullptr) other.buffer_->acquire();
    if (Buffer* old = std::exchange(buffer_, other.buffer_)) old->release();
    return *this;
  }
  BufferRef& operator=(BufferRef&& other) noexcept {
    Buffer* taken = std::exchange(other.buffer_, nullptr);
    if (Buffer* old = std::exchange(buffer_, taken)) old->release();
    return *this;
  }
  ~BufferRef() {
    if (buffer_ != nullptr) buffer_->release();
  }

  /// `bytes` uninitialised bytes. The allocator must outlive the buffer. Errors: those of the allocator.
  static BufferRef allocate(std::size_t bytes, Allocator& allocator);
  /// `count` empty strings. Errors: those of the allocator; invalid_argument if it is not of host memory.
  static BufferRef allocate_strings(std::size_t count, Allocator& allocator);
  /// Memory of somebody else, who keeps it alive until `release` is called (which may be empty). `release` runs on the
  /// thread that lets go of the last handle and must not throw.
  static BufferRef external(void* data, std::size_t bytes, UniqueFunction<void()> release, bool is_read_only = false);

  Buffer* get() const noexcept { return buffer_; }
  Buffer* operator->() const noexcept { return buffer_; }
  explicit operator bool() const noexcept { return buffer_ != nullptr; }

  /// True if this is the only handle and the bytes may be written: what a kernel asks before it reuses them.
  bool is_unique() const noexcept {
    return buffer_ != nullptr && buffer_->refs_.load(std::memory_order_acquire) == 1 && !buffer_->is_read_only_;
  }
  /// For tests and statistics; stale as soon as it is read.
  int use_count() const noexcept { return buffer_ == nullptr ? 0 : buffer_->refs_.load(std::memory_order_relaxed); }

  friend bool operator==(const BufferRef&, const BufferRef&) noexcept = default;

 private:
  explicit BufferRef(Buffer* buffer) noexcept : buffer_(buffer) {}

  Buffer* buffer_ = nullptr;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/core/buffer.ipp>
#endif
