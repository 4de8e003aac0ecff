#pragma once

/// Public: shapes of edges, which may be known in part.

#include <dflow/core/shape.hpp>

#include <iosfwd>
#include <optional>

namespace dflow {

/// The known part of a tensor's shape before a step runs: the rank may be unknown, or single dimensions (`dynamic`).
/// The default is a scalar, as for `Shape`.
///
/// Thread safety: a value type.
/// Errors: every function that makes a shape throws InvalidArgument that prints the extents. It throws if an extent is
/// below `dynamic`, there are more than `max_rank`, or the product of the known extents exceeds 2^63-1.
class PartialShape {
 public:
  constexpr PartialShape() noexcept = default;
  PartialShape(const Shape& shape) noexcept;
  PartialShape(std::initializer_list<std::int64_t> dims)
      : PartialShape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  explicit PartialShape(std::span<const std::int64_t> dims);

  /// Nothing is known, not even the rank.
  static PartialShape unknown() noexcept;
  /// Only the rank is known.
  static PartialShape unknown(int rank);

  bool has_rank() const noexcept { return rank_ >= 0; }
  /// The rank, or -1 if it is unknown.
  int rank() const noexcept { return rank_; }
  /// The extent of dimension `i`, or `dynamic`; `dynamic` as well if the rank is unknown.
  std::int64_t dim(int i) const noexcept {
    if (rank_ < 0) return dynamic;
    assert(i >= 0 && i < rank_);
    return dims_[static_cast<std::size_t>(i)];
  }
  std::int64_t operator[](int i) const noexcept { return dim(i); }
  /// The extents; empty if the rank is unknown.
  std::span<const std::int64_t> dims() const noexcept {
    return {dims_, static_cast<std::size_t>(rank_ < 0 ? 0 : rank_)};
  }

  bool is_fully_defined() const noexcept;
  /// The number of elements; empty unless the shape is fully defined.
  std::optional<std::int64_t> num_elements() const noexcept;
  /// Errors: InvalidArgument unless the shape is fully defined.
  Shape to_shape() const;

  /// True if some shape fits both.
  bool is_compatible_with(const PartialShape& other) const noexcept;
  /// The shape that unites the facts of both. Errors: InvalidArgument that prints both shapes if they contradict each
  /// other.
  PartialShape merged_with(const PartialShape& other) const;
  /// The facts that are true for both shapes: different dimensions become `dynamic`, different ranks become unknown.
  PartialShape generalized_with(const PartialShape& other) const noexcept;

  /// As for `Shape`; from an unknown rank they give an unknown rank.
  PartialShape with_dim(int i, std::int64_t extent) const;
  PartialShape inserted(int i, std::int64_t extent) const;
  PartialShape erased(int i) const;
  PartialShape appended(std::int64_t extent) const { return inserted(rank_, extent); }
  PartialShape subshape(int first, int last) const;
  PartialShape concatenated(const PartialShape& tail) const;

  /// "[?,784]"; "<unknown>" if the rank is unknown.
  std::string to_string() const;

  friend bool operator==(const PartialShape& a, const PartialShape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.dims_[i] != b.dims_[i]) return false;
    }
    return true;
  }

 private:
  std::int64_t dims_[max_rank] = {};
  std::int8_t rank_ = 0;
};

/// Prints `to_string()`.
std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

}  // namespace dflow
