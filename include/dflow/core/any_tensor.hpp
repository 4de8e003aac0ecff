#pragma once

/// Public: tensors whose element type is known at run time.

#include <dflow/core/dtype.hpp>
#include <dflow/core/memory/buffer.hpp>
#include <dflow/core/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace dflow {

template <Element T>
class Tensor;

namespace detail {
[[noreturn]] void throw_element_type_mismatch(DType held, DType wanted);
/// The position of the first byte that is no truth value; the number of bytes if all are truth values.
inline std::size_t first_no_truth_value(std::span<const std::byte> bytes) noexcept {
  std::size_t at = 0;
  while (at < bytes.size() && bytes[at] <= std::byte{1}) ++at;
  return at;
}
}  // namespace detail

/// The size of a tensor's elements in bytes, from the size of the element type; empty if it overflows.
inline std::optional<std::size_t> num_bytes(DType dtype, const Shape& shape) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.num_elements()), size_of(dtype), &bytes)) return {};
  return bytes;
}

/// A dense row-major tensor with an element type known at run time. The edges of a graph carry AnyTensors.
///
/// A copy is a handle to the same elements, as in TensorFlow: it costs one atomic increment, and a write through one
/// handle is seen through all. `deep_copy` makes new elements. Slices of the leading dimension and reshapes are handles
/// as well. A default tensor and a moved-from tensor are uninitialised: no type, no elements.
///
/// Thread safety: distinct handles may be used from distinct threads; their elements are guarded by nothing.
/// Errors: InvalidArgument if type or shape do not fit, ResourceExhausted if memory runs out.
class AnyTensor {
 public:
  AnyTensor() noexcept = default;
  /// A new tensor: numbers are uninitialised, strings empty. Errors also: InvalidArgument for a type without elements.
  AnyTensor(DType dtype, const Shape& shape, Allocator& allocator = default_cpu_allocator())
      : shape_(shape), dtype_(dtype) {
    const std::optional<std::size_t> bytes = is_plain(dtype) ? num_bytes(dtype, shape) : std::nullopt;
    if (!bytes) {
      allocate_unusual(allocator);
    } else if (*bytes != 0) {
      buffer_ = BufferRef::allocate(*bytes, allocator);
      data_ = buffer_->data();
    }
  }

  AnyTensor(const AnyTensor&) noexcept = default;
  AnyTensor& operator=(const AnyTensor&) noexcept = default;
  AnyTensor(AnyTensor&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        buffer_(std::move(other.buffer_)),
        shape_(other.shape_),
        dtype_(std::exchange(other.dtype_, DType::invalid)) {}
  AnyTensor& operator=(AnyTensor&& other) noexcept {
    if (this == &other) return *this;
    data_ = std::exchange(other.data_, nullptr);
    buffer_ = std::move(other.buffer_);
    shape_ = other.shape_;
    dtype_ = std::exchange(other.dtype_, DType::invalid);
    return *this;
  }
  ~AnyTensor() = default;

  static AnyTensor zeros(DType dtype, const Shape& shape, Allocator& allocator = default_cpu_allocator());

  /// A tensor over memory that its owner gives away. The library may write and keep the memory until it calls `release`
  /// (see BufferRef::external). With another `lending` the memory is borrowed. Strings and handles in the memory stay
  /// the owner's. Errors: InvalidArgument if `bytes` are too few for the shape.
  static AnyTensor adopt(DType dtype, const Shape& shape, void* data, std::size_t bytes, UniqueFunction<void()> release,
                         Lending lending = Lending::given);

  /// A tensor of numbers over a part of a buffer. Errors: InvalidArgument if it reaches past the buffer's end.
  static AnyTensor over(BufferRef buffer, std::size_t offset_bytes, DType dtype, const Shape& shape);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t dim(int i) const noexcept { return shape_.dim(i); }
  std::int64_t num_elements() const noexcept { return shape_.num_elements(); }
  /// The size of the elements in bytes, without the memory that strings refer to.
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(shape_.num_elements()) * size_of(dtype_); }
  bool is_initialized() const noexcept { return dtype_ != DType::invalid; }

  /// The first element; null if there is none.
  void* raw_data() noexcept { return data_; }
  const void* raw_data() const noexcept { return data_; }

  /// The elements in row-major order. Errors: InvalidArgument that names both types if T is not the element type.
  template <Element T>
  std::span<T> span() {
    require_dtype(dtype_of<T>);
    return {static_cast<T*>(data_), static_cast<std::size_t>(shape_.num_elements())};
  }
  template <Element T>
  std::span<const T> span() const {
    require_dtype(dtype_of<T>);
    return {static_cast<const T*>(data_), static_cast<std::size_t>(shape_.num_elements())};
  }

  /// This tensor with its type known to the compiler. Errors: InvalidArgument that names both types.
  template <Element T>
  Tensor<T> as() const&;
  template <Element T>
  Tensor<T> as() &&;

  /// Makes this tensor uninitialised and releases the elements.
  void reset() noexcept {
    data_ = nullptr;
    buffer_ = BufferRef();
    dtype_ = DType::invalid;
  }

  const BufferRef& buffer() const noexcept { return buffer_; }
  bool shares_buffer_with(const AnyTensor& other) const noexcept { return buffer_ && buffer_ == other.buffer_; }
  /// True if no other handle shares the elements and the library owns them: a kernel may write its results there. False
  /// for borrowed memory, and for an empty tensor, which has no buffer.
  bool buffer_is_unique() const noexcept { return buffer_.is_unique(); }
  /// True for borrowed memory that must not be written.
  bool is_read_only() const noexcept { return buffer_ && buffer_->is_read_only(); }
  /// True for memory that the lender wants back unchanged. Copy the elements to keep them for longer.
  bool is_borrowed() const noexcept { return buffer_ && buffer_->is_borrowed(); }
  /// True if the first element lies on a boundary of `Allocator::default_alignment`; slices may be unaligned.
  bool is_aligned() const noexcept {
    return reinterpret_cast<std::uintptr_t>(data_) % Allocator::default_alignment == 0;
  }

  /// Rows [begin, end) of the leading dimension, sharing the elements.
  AnyTensor slice(std::int64_t begin, std::int64_t end) const;
  /// The same elements in another shape with as many elements.
  AnyTensor reshaped(const Shape& shape) const;
  /// A tensor with new elements of the same values. Handles to resources are still shared.
  AnyTensor deep_copy(Allocator& allocator = default_cpu_allocator()) const;

  /// "float[2,3] [[1, 2, 3], [4, 5, 6]]"; elements past `max_elements` print as "...".
  std::string to_string(std::int64_t max_elements = 64) const;

 private:
  template <Element>
  friend class Tensor;

  void require_dtype(DType wanted) const {
    if (dtype_ != wanted) [[unlikely]]
      detail::throw_element_type_mismatch(dtype_, wanted);
  }
  void allocate_unusual(Allocator& allocator);

  void* data_ = nullptr;
  BufferRef buffer_;
  [[no_unique_address]] Shape shape_;
  DType dtype_ = DType::invalid;
};

/// Prints `to_string()`.
std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor);

/// Equal type, shape and bytes (strings by content): NaN equals itself, and 0.0 differs from -0.0.
bool bitwise_equal(const AnyTensor& a, const AnyTensor& b) noexcept;

}  // namespace dflow
