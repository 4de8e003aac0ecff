#pragma once

/// Public: tensors whose element type is known at run time.

#include <dflow/core/dtype.hpp>
#include <dflow/core/memory/buffer.hpp>
#include <dflow/core/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace dflow {

template <Element T>
class Tensor;

namespace detail {
[[noreturn]] void throw_element_type_mismatch(DType held, DType wanted);
/// Where the first byte is that is no truth value; how many there are if all are.
inline std::size_t first_no_truth_value(std::span<const std::byte> bytes) noexcept {
  std::size_t at = 0;
  while (at < bytes.size() && bytes[at] <= std::byte{1}) ++at;
  return at;
}
}  // namespace detail

/// The bytes of the elements of a tensor, where the element type says how many each takes; none if they are too many.
inline std::optional<std::size_t> num_bytes(DType dtype, const Shape& shape) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.num_elements()), size_of(dtype), &bytes)) return {};
  return bytes;
}

/// A dense row-major tensor whose element type is known at run time: what travels along an edge.
///
/// A copy is a handle to the same elements, as in TensorFlow: it costs one atomic increment, and what is written
/// through one is seen through all. `deep_copy` makes elements of its own. Slices of the leading dimension and reshapes
/// are handles as well. The default, and what is left after a move, is uninitialised: no type, no elements.
///
/// Thread safety: distinct handles may be used from distinct threads; their elements are guarded by nothing.
/// Errors: InvalidArgument where type or shape do not fit, ResourceExhausted where memory runs out.
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

  /// A tensor over memory of somebody else, who gives it away: it is the library's to write and keep until `release` is
  /// called, as BufferRef::external says. With another `lending` it is borrowed. Strings and handles in it stay that
  /// owner's. Errors: InvalidArgument if `bytes` are too few for the shape.
  static AnyTensor adopt(DType dtype, const Shape& shape, void* data, std::size_t bytes, UniqueFunction<void()> release,
                         Lending lending = Lending::given);

  /// A tensor of numbers over a part of a buffer. Errors: InvalidArgument if it reaches past the buffer's end.
  static AnyTensor over(BufferRef buffer, std::size_t offset_bytes, DType dtype, const Shape& shape);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t dim(int i) const noexcept { return shape_.dim(i); }
  std::int64_t num_elements() const noexcept { return shape_.num_elements(); }
  /// The bytes that the elements take here; what a string refers to is not counted.
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

  /// Makes this uninitialised and lets go of the elements.
  void reset() noexcept {
    data_ = nullptr;
    buffer_ = BufferRef();
    dtype_ = DType::invalid;
  }

  const BufferRef& buffer() const noexcept { return buffer_; }
  bool shares_buffer_with(const AnyTensor& other) const noexcept { return buffer_ && buffer_ == other.buffer_; }
  /// True if no other handle shares the elements and they are the library's own: a kernel may write its results there.
  /// False for borrowed memory, and for an empty tensor, which has no buffer.
  bool buffer_is_unique() const noexcept { return buffer_.is_unique(); }
  /// True for borrowed memory that must not be written.
  bool is_read_only() const noexcept { return buffer_ && buffer_->is_read_only(); }
  /// True for memory whose lender wants it back unchanged: who keeps the elements for longer copies them.
  bool is_borrowed() const noexcept { return buffer_ && buffer_->is_borrowed(); }
  /// True if the first element lies on a boundary of `Allocator::default_alignment`; slices may not.
  bool is_aligned() const noexcept {
    return reinterpret_cast<std::uintptr_t>(data_) % Allocator::default_alignment == 0;
  }

  /// Rows [begin, end) of the leading dimension, sharing the elements.
  AnyTensor slice(std::int64_t begin, std::int64_t end) const;
  /// The same elements in another shape of as many.
  AnyTensor reshaped(const Shape& shape) const;
  /// Elements of its own. Handles to resources are still shared.
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

/// Equal type, shape and bytes (strings by content): NaN equals itself, and 0.0 differs from -0.0.
bool bitwise_equal(const AnyTensor& a, const AnyTensor& b) noexcept;

}  // namespace dflow
