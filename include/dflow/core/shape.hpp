#pragma once

/// Public: shapes of tensors.

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <type_traits>

namespace dflow {

/// The highest rank of a tensor.
inline constexpr int max_rank = 8;

/// A dimension that is not known when the graph is built.
inline constexpr std::int64_t dynamic = -1;

/// The extents of a dense tensor, outermost dimension first. Rank 0, the default, is a scalar; a zero extent makes an
/// empty tensor. Stored inline; the number of elements is kept beside the extents.
///
/// Thread safety: a value type.
/// Errors: every function that makes a shape throws InvalidArgument that prints the extents. It throws if an extent is
/// negative, there are more than `max_rank`, or their product exceeds 2^63-1.
class Shape {
 public:
  constexpr Shape() noexcept : num_elements_(1), rank_(0) {
    for (int i = 0; i < (std::is_constant_evaluated() ? max_rank : usual_rank); ++i) dims_[i] = 0;
  }
  constexpr Shape(const Shape& other) noexcept : num_elements_(other.num_elements_), rank_(other.rank_) {
    copy_dims(other);
  }
  constexpr Shape& operator=(const Shape& other) noexcept {
    num_elements_ = other.num_elements_;
    rank_ = other.rank_;
    copy_dims(other);
    return *this;
  }
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const noexcept { return rank_; }
  std::int64_t num_elements() const noexcept { return num_elements_; }
  bool is_scalar() const noexcept { return rank_ == 0; }

  std::int64_t dim(int i) const noexcept {
    assert(i >= 0 && i < rank_);
    return dims_[static_cast<std::size_t>(i)];
  }
  std::int64_t operator[](int i) const noexcept { return dim(i); }
  std::span<const std::int64_t> dims() const noexcept { return {dims_, static_cast<std::size_t>(rank_)}; }
  const std::int64_t* begin() const noexcept { return dims_; }
  const std::int64_t* end() const noexcept { return dims_ + rank_; }

  /// The product of the extents of dimensions [first, last).
  std::int64_t num_elements(int first, int last) const noexcept;

  /// Copies of this shape with one dimension changed, put in before `i` (at the end for `i == rank()`), or taken out.
  Shape with_dim(int i, std::int64_t extent) const;
  Shape inserted(int i, std::int64_t extent) const;
  Shape erased(int i) const;
  Shape appended(std::int64_t extent) const { return inserted(rank_, extent); }
  /// The dimensions [first, last).
  Shape subshape(int first, int last) const;
  Shape concatenated(const Shape& tail) const;

  /// "[2,3]"; "[]" for a scalar.
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_ || a.num_elements_ != b.num_elements_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.dims_[i] != b.dims_[i]) return false;
    }
    return true;
  }

 private:
  /// Copied always; higher dimensions only if there are any. A tensor is copied on every edge, and the compiler's own
  /// copy of the whole array is slower: it reads back the bytes just written in other widths.
  static constexpr int usual_rank = 4;

  constexpr void copy_dims(const Shape& other) noexcept {
    for (int i = 0; i < usual_rank; ++i) dims_[i] = other.dims_[i];
    if (other.rank_ > usual_rank) [[unlikely]] {
      for (int i = usual_rank; i < max_rank; ++i) dims_[i] = other.dims_[i];
    }
  }

  std::int64_t dims_[max_rank];
  std::int64_t num_elements_;
  std::int32_t rank_;
};

/// Steps between neighbours along each dimension of a dense row-major tensor, in elements; entries past the rank are 0.
std::array<std::int64_t, max_rank> row_major_strides(const Shape& shape) noexcept;

namespace detail {
/// "[2,?,3]": -1 prints as "?".
std::string dims_to_string(std::span<const std::int64_t> dims);
}  // namespace detail

/// Prints `to_string()`.
std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace dflow
