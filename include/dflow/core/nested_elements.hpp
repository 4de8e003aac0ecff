#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/core/shape.hpp>

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dflow {

namespace detail {
/// The error of lists that cannot stand side by side with these shapes.
Status ragged_elements(std::size_t position, const Shape& shape, const Shape& first);
Status element_out_of_range(std::string_view dtype);

/// Whether a finite number is infinite as a real of type T.
template <class T, class U>
bool overflows(U value) {
  return std::isfinite(value) && !std::isfinite(static_cast<double>(static_cast<T>(value)));
}

template <class U, class T>
constexpr bool stands_for_element() {
  constexpr bool is_number = std::is_arithmetic_v<U> && !std::is_same_v<U, bool>;
  if constexpr (std::is_same_v<U, T>) return true;
  if constexpr (std::is_same_v<T, std::string>) return std::is_convertible_v<U, std::string_view>;
  if constexpr (is_integer_element<T>) return is_number && std::is_integral_v<U>;
  if constexpr (is_floating_element<T>) return is_number || std::is_same_v<U, Half> || std::is_same_v<U, BFloat16>;
  return is_complex_element<T> && is_number;
}

/// A type that may stand for an element of type T: numbers that keep their meaning (no fraction for an integer, no
/// number for a bool), text for a string.
template <class U, class T>
concept ElementLiteral = stands_for_element<U, T>();
}  // namespace detail

/// The elements of a tensor as they are written: a pair of braces per dimension, `{{1, 2}, {3, 4}}` for [2, 2]. An
/// empty pair is a dimension of 0.
///
/// Thread safety: a value type.
/// Errors: an error in the elements is kept as `status()`, for a caller that knows the place of the braces. The errors
/// are lists of different lengths side by side, a number that an integer cannot hold, and a number that becomes
/// infinite in a real. More than `max_rank` dimensions throw InvalidArgument.
template <Element T>
class NestedElements {
 public:
  template <detail::ElementLiteral<T> U>
  NestedElements(U value) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_same_v<T, std::string> && !std::is_same_v<U, std::string>) {
      elements_.emplace_back(std::string_view(value));
    } else if constexpr (is_complex_element<T> && std::is_arithmetic_v<U>) {
      using Real = typename T::value_type;
      if (detail::overflows<Real>(value)) status_ = detail::element_out_of_range(dtype_name(dtype_of<T>));
      elements_.push_back(T(static_cast<Real>(value)));
    } else {
      if constexpr (std::is_integral_v<T> && std::is_integral_v<U> && !std::is_same_v<T, U>) {
        const T converted = static_cast<T>(value);
        const bool is_same = static_cast<U>(converted) == value && (converted < T{}) == (value < U{});
        if (!is_same) status_ = detail::element_out_of_range(dtype_name(dtype_of<T>));
      } else if constexpr (is_floating_element<T> && std::is_arithmetic_v<U>) {
        if (detail::overflows<T>(value)) status_ = detail::element_out_of_range(dtype_name(dtype_of<T>));
      }
      elements_.push_back(static_cast<T>(value));
    }
  }
  NestedElements(std::initializer_list<NestedElements> items) { join(items.begin(), items.size()); }

  /// The same for braces with a known depth of at least two.
  static NestedElements of_rows(std::initializer_list<std::initializer_list<NestedElements>> rows) {
    const std::vector<NestedElements> items(rows.begin(), rows.end());
    NestedElements all((Joined()));
    all.join(items.data(), items.size());
    return all;
  }

  const Status& status() const noexcept { return status_; }
  /// Precondition: `status()` is ok.
  const Shape& shape() const noexcept { return shape_; }
  const std::vector<T>& elements() const noexcept { return elements_; }

 private:
  struct Joined {};

  /// Takes lists to be joined. Not a default constructor: empty braces would call it.
  explicit NestedElements(Joined) {}

  void join(const NestedElements* items, std::size_t count) {
    const Shape first = count == 0 ? Shape() : items[0].shape_;
    for (std::size_t i = 0; i < count; ++i) {
      const NestedElements& item = items[i];
      if (status_.ok()) status_ = item.status_;
      if (status_.ok() && item.shape_ != first) status_ = detail::ragged_elements(i, item.shape_, first);
      elements_.insert(elements_.end(), item.elements_.begin(), item.elements_.end());
    }
    shape_ = first.inserted(0, static_cast<std::int64_t>(count));
  }

  Shape shape_;
  std::vector<T> elements_;
  Status status_;
};

}  // namespace dflow
