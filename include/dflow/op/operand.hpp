#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/output.hpp>

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>

/// Tensors and literals where a builder takes an edge. One rule holds for every builder: among its arguments that are
/// edges, one must be an edge; each other may be a tensor, a number or a text, and becomes a constant beside that edge.

namespace dflow {

namespace detail {

/// Text that may stand for a scalar string.
template <class V>
concept TextLiteral = std::is_convertible_v<const V&, std::string_view>;

/// A number or a text that may stand for a scalar of element type T: not a number with a fraction where T is an
/// integer, and only bool where T is bool.
template <class V, class T>
concept LiteralFor = std::same_as<V, T> || (std::same_as<T, std::string> && TextLiteral<V>) ||
                     (std::is_arithmetic_v<V> && !std::same_as<V, bool> && !std::same_as<T, bool> &&
                      !std::same_as<T, std::string> && (std::integral<V> || !std::integral<T>));

/// What may stand for an edge of element type T beside another edge.
template <class V, class T>
concept ValueFor = std::derived_from<V, Tensor<T>> || LiteralFor<V, T>;

/// `value` has the bits of an unsigned number, or else of a signed one.
[[noreturn]] void throw_literal_out_of_range(std::uint64_t value, bool is_unsigned, DType dtype,
                                             const std::source_location& where);
[[noreturn]] void throw_literal_out_of_range(double value, DType dtype, const std::source_location& where);

/// Errors: InvalidArgument for a whole number that the integer type T cannot hold, and for a finite number that is
/// infinite in a real type.
template <Element T, class V>
T convert_literal(const V& value, const std::source_location& where = {}) {
  if constexpr (std::same_as<V, T>) {
    return value;
  } else if constexpr (std::same_as<T, std::string>) {
    return std::string(std::string_view(value));
  } else if constexpr (is_complex_element<T>) {
    using Real = typename T::value_type;
    if (overflows<Real>(value)) throw_literal_out_of_range(static_cast<double>(value), dtype_of<T>, where);
    return T(static_cast<Real>(value));
  } else if constexpr (std::integral<T>) {
    const T converted = static_cast<T>(value);
    const bool is_same = static_cast<V>(converted) == value && (converted < T{}) == (value < V{});
    if (!is_same) {
      throw_literal_out_of_range(static_cast<std::uint64_t>(value), std::unsigned_integral<V>, dtype_of<T>, where);
    }
    return converted;
  } else {
    if (overflows<T>(value)) throw_literal_out_of_range(static_cast<double>(value), dtype_of<T>, where);
    return static_cast<T>(value);
  }
}

template <Element T, ValueFor<T> V>
AnyTensor tensor_of_value(const V& value, const std::source_location& where) {
  if constexpr (std::derived_from<V, Tensor<T>>) {
    return value;
  } else {
    return Tensor<T>(convert_literal<T>(value, where));
  }
}

/// A Const node (ops/array/constant.hpp). Errors: InvalidArgument if the tensor is empty.
AnyOutput any_constant(GraphStore& graph, AnyTensor value, const At& at);
/// The same in the graph of `edge`; an empty edge if that has no graph, which the op that takes it then says.
AnyOutput constant_beside(const AnyOutput& edge, AnyTensor value, const std::source_location& where);

}  // namespace detail

/// An argument of a builder that knows its graph: an edge, or a tensor or literal that becomes a constant.
///
/// ```cpp
/// total.assign_add(1);                         // Variable<float>::assign_add(const Operand<float>&)
/// words.find(keys, df::Tensor<float>({2}, {0, 0}));
/// ```
template <Element T>
class Operand {
 public:
  Operand(const Output<T>& edge, std::source_location where = std::source_location::current())  // NOLINT: converts
      : edge_(edge), where_(where) {}
  template <detail::ValueFor<T> V>
  Operand(const V& value, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : value_(detail::tensor_of_value<T>(value, where)), where_(where), is_edge_(false) {}

  /// The edge, or a constant in the graph of `neighbour`; empty if `neighbour` is.
  Output<T> beside(const AnyOutput& neighbour) const {
    return is_edge_ ? edge_ : Output<T>::unchecked(detail::constant_beside(neighbour, value_, where_));
  }
  /// The same beside another argument, which must be an edge if this is none.
  template <Element U>
  Output<T> beside(const Operand<U>& neighbour) const {
    return beside(neighbour.edge());
  }
  /// Empty for a tensor or a literal.
  const Output<T>& edge() const noexcept { return edge_; }
  At at() const noexcept { return {.name = {}, .where = where_}; }

 private:
  Output<T> edge_;
  AnyTensor value_;
  std::source_location where_;
  bool is_edge_ = true;
};

}  // namespace dflow
