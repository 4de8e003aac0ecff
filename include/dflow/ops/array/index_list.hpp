#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/infer_context.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dflow {

namespace detail {
template <class R>
concept RangeOfIndices = requires(const R& range) {
  { *std::begin(range) } -> std::convertible_to<std::int64_t>;
  std::end(range);
  requires std::integral<std::remove_cvref_t<decltype(*std::begin(range))>>;
  requires !std::same_as<std::remove_cvref_t<decltype(*std::begin(range))>, bool>;
  requires !std::same_as<std::remove_cvref_t<decltype(*std::begin(range))>, char>;
} && !std::derived_from<R, AnyTensor> && !std::same_as<R, Shape>;

struct IndexTensor {};

[[noreturn]] void throw_no_index(std::uint64_t value, const std::source_location& where);

/// Errors: InvalidArgument for a number that an index cannot be, such as `std::size_t(-1)`.
template <std::integral I>
std::int64_t to_index(I value, const std::source_location& where) {
  const auto index = static_cast<std::int64_t>(value);
  const bool is_same = static_cast<I>(index) == value && (index < 0) == (value < I{});
  if (!is_same) throw_no_index(static_cast<std::uint64_t>(value), where);
  return index;
}
}  // namespace detail

/// Integers that an op takes along an edge (a shape, axes, bounds), given as numbers, as one number, as any range of
/// integers, as a tensor, or as the edge itself: `reshape(x, {2, -1})`, `reduce_sum(x, 1)`, `reshape(x, dims)`. A
/// default-constructed list stands for the default of the builder: all axes.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for a number that does not fit in int64.
class IndexList {
 public:
  IndexList() = default;
  IndexList(std::initializer_list<std::int64_t> values) : values_(values), is_given_(true) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  IndexList(I value, std::source_location where = std::source_location::current())
      : IndexList({detail::to_index(value, where)}) {}
  /// Any range of integers: `std::vector<int>`, `std::array<std::int64_t, 2>`, a span.
  template <detail::RangeOfIndices R>
  IndexList(const R& values, std::source_location where = std::source_location::current()) : is_given_(true) {
    for (auto at = std::begin(values); at != std::end(values); ++at) values_.push_back(detail::to_index(*at, where));
  }
  IndexList(const Shape& shape) : IndexList(shape.dims()) {}
  /// Errors: InvalidArgument if the tensor has rank 2 or more.
  IndexList(const Tensor<std::int32_t>& values) : IndexList(values, detail::IndexTensor()) {}
  IndexList(const Tensor<std::int64_t>& values) : IndexList(values, detail::IndexTensor()) {}
  IndexList(const Output<std::int32_t>& edge) : edge_(edge), is_given_(true) {}
  IndexList(const Output<std::int64_t>& edge) : edge_(edge), is_given_(true) {}

  /// False for the default of the builder; true for a list without numbers that was given as such.
  bool is_given() const noexcept { return is_given_; }
  /// Whether there are neither numbers nor an edge.
  bool empty() const noexcept { return values_.empty() && !is_edge(); }
  bool is_edge() const noexcept { return edge_.is_valid(); }
  /// The numbers, for an op that takes them as an attribute. Errors: InvalidArgument, naming the op, if it is an edge.
  const std::vector<std::int64_t>& numbers(std::string_view op, const At& at) const;
  /// int64 if the edge is, or if a number needs it; else int32.
  DType dtype() const;
  /// The edge, or a vector constant of that type.
  AnyOutput edge(GraphStore& graph, DType dtype, const At& at) const;
  AnyOutput edge(GraphStore& graph, const At& at) const { return edge(graph, dtype(), at); }

 private:
  IndexList(const AnyTensor& values, detail::IndexTensor);

  std::vector<std::int64_t> values_;
  AnyOutput edge_;
  bool is_given_ = false;
};

namespace detail {

/// The integers of a shape, of axes or of paddings, without an allocation.
class SmallIntegers {
 public:
  static constexpr int max_size = 2 * max_rank;

  SmallIntegers() = default;
  /// Precondition: int32 or int64, at most max_size elements.
  explicit SmallIntegers(const AnyTensor& integers);

  int size() const noexcept { return size_; }
  std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  void push_back(std::int64_t value) noexcept { values_[static_cast<std::size_t>(size_++)] = value; }
  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + size_; }
  std::span<const std::int64_t> span() const noexcept { return {begin(), end()}; }

 private:
  std::array<std::int64_t, max_size> values_{};
  int size_ = 0;
};

/// The value of input `i` if it is known; fails if there are more integers than dimensions can need.
std::optional<SmallIntegers> known_integers(const InferContext& context, int i);
/// Gives output 0 the shape that input `i` holds, as far as it is known; fails if it can be none.
void infer_shape_argument(InferContext& context, int i = 0);

/// The tensor of an edge that comes from a constant, else null.
const AnyTensor* constant_value(const AnyOutput& edge);
/// Its integers, if there are few enough.
std::optional<SmallIntegers> constant_integers(const AnyOutput& edge);

AnyOutput int32_constant(GraphStore& graph, std::int32_t value, const At& at = {});
AnyOutput int32_constant(GraphStore& graph, std::span<const std::int64_t> values, const At& at = {});

}  // namespace detail

}  // namespace dflow
