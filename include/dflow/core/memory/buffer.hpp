#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/core/memory/allocator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace dflow {

/// How the library may use lent memory, until it says that it is done with it.
enum class Lending : std::uint8_t {
  read_only,  ///< nobody writes it
  view,       ///< holders of the tensor may write it, kernels do not: its content stays the lender's
  given,      ///< the library's own: kernels may put their results there and keep it
};

/// The bytes behind one or more tensors, with a count of the handles to them. For owned host memory, this header lies
/// right before the bytes, unless they begin or fill a page and the header would take another page.
///
/// Thread safety: the count is atomic; distinct handles may be used from distinct threads. Nothing guards the bytes
/// themselves: an owner that shares them does not write them.
class alignas(64) Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  /// Lent by a caller that does not want it written.
  bool is_read_only() const noexcept { return is_read_only_; }
  /// Lent by a caller that has not given it away: it must not be kept longer than the caller expects, nor be reused.
  bool is_borrowed() const noexcept { return is_borrowed_; }

 private:
  friend class BufferRef;

  /// The place of the header, which decides how all is freed.
  enum class Header : std::uint8_t {
    before,    ///< right before the bytes
    apart,     ///< in a block of its own from the same allocator
    on_heap,   ///< on the heap; the bytes are not the CPU's
    external,  ///< an External on the heap; the bytes are somebody else's
  };
  struct External;

  Buffer(Header header, void* data, std::size_t capacity_bytes, BlockOwner* owner,
         std::shared_ptr<Allocator> keeper) noexcept
      : header_(header), data_(data), capacity_bytes_(capacity_bytes), owner_(owner), keeper_(std::move(keeper)) {}

  void acquire() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// The holder of the only handle needs no atomic decrement: nobody else can make a second one.
  void release() noexcept {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }
  static void destroy(Buffer* buffer) noexcept;

  std::atomic<std::int32_t> refs_{1};
  Header header_;
  bool holds_strings_ = false;
  bool is_read_only_ = false;
  bool is_borrowed_ = false;
  void* data_;
  std::size_t capacity_bytes_;
  BlockOwner* owner_;
  std::shared_ptr<Allocator> keeper_;  ///< of an allocator that is its own block owner
};

/// A handle to a Buffer: copies share it, the last one to go frees it. Null by default.
///
/// Thread safety: one handle is a value type; handles to one Buffer may be copied and dropped in different threads.
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

  /// `bytes` uninitialised bytes, which outlive the allocator as far as it lets them (see Allocator).
  /// Errors: the errors of the allocator; ResourceExhausted if it gives null.
  static BufferRef allocate(std::size_t bytes, Allocator& allocator);
  /// `count` empty strings. Errors: the errors of the allocator; InvalidArgument if it is not of host memory.
  static BufferRef allocate_strings(std::size_t count, Allocator& allocator);
  /// Memory of another owner, which keeps it alive until `release` is called. `release` runs on the thread that lets
  /// go of the last handle and must not throw. An empty `release` is allowed; then the memory is never taken for the
  /// library's own: `given` memory counts as a `view`. Errors: bad_alloc, and `release` is not called.
  static BufferRef external(void* data, std::size_t bytes, UniqueFunction<void()> release, Lending lending);

  Buffer* get() const noexcept { return buffer_; }
  Buffer* operator->() const noexcept { return buffer_; }
  explicit operator bool() const noexcept { return buffer_ != nullptr; }

  /// True if this is the only handle and the bytes are the library's own: a kernel asks this before it reuses them.
  bool is_unique() const noexcept {
    return buffer_ != nullptr && buffer_->refs_.load(std::memory_order_acquire) == 1 && !buffer_->is_borrowed_;
  }
  /// For tests and statistics; stale as soon as it is read.
  int use_count() const noexcept { return buffer_ == nullptr ? 0 : buffer_->refs_.load(std::memory_order_relaxed); }

  friend bool operator==(const BufferRef&, const BufferRef&) noexcept = default;

 private:
  explicit BufferRef(Buffer* buffer) noexcept : buffer_(buffer) {}

  Buffer* buffer_ = nullptr;
};

}  // namespace dflow
