#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/unary.hpp>

#include <source_location>
#include <type_traits>

/// Arithmetic on typed edges: `x * 2.0f + 1.0f`, `-x`, `i + 1 < limit`. Shapes broadcast; a tensor or a literal
/// becomes a constant of the edge's element type. Edges of different element types do not mix: `cast` one of them. `==`
/// compares handles; `equal(a, b)` builds a node that compares values.

namespace dflow {

namespace detail {

/// A tensor or a literal on the left of an edge, and the line of the user's program where it stands. An edge there
/// would fit two overloads.
template <Element T>
class ValueOnTheLeft {
 public:
  template <ValueFor<T> V>
  ValueOnTheLeft(const V& value,  // NOLINT: meant to convert
                 std::source_location where = std::source_location::current())
      : value_(tensor_of_value<T>(value, where)), where_(where) {}

  /// Empty if `edge` is.
  Output<T> beside(const AnyOutput& edge) const { return Output<T>::unchecked(constant_beside(edge, value_, where_)); }
  At at() const noexcept { return {.name = {}, .where = where_}; }

 private:
  AnyTensor value_;
  std::source_location where_;
};

// Parameters of the types below take no part in deduction, which lets literals convert.
template <class T>
using RightOf = std::type_identity_t<Operand<T>>;
template <class T>
using LeftOf = std::type_identity_t<ValueOnTheLeft<T>>;

template <class O, Element T>
auto combine(const Output<T>& a, const Operand<T>& b) {
  return apply<O>(a, b.beside(a), {}, b.at());
}
template <class O, Element T>
auto combine(const ValueOnTheLeft<T>& a, const Output<T>& b) {
  return apply<O>(a.beside(b), b, {}, a.at());
}

}  // namespace detail

template <AllowedFor<Add> T>
Output<T> operator+(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Add, T>(a, b);
}
template <AllowedFor<Add> T>
Output<T> operator+(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Add, T>(a, b);
}
template <AllowedFor<Sub> T>
Output<T> operator-(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Sub, T>(a, b);
}
template <AllowedFor<Sub> T>
Output<T> operator-(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Sub, T>(a, b);
}
template <AllowedFor<Mul> T>
Output<T> operator*(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Mul, T>(a, b);
}
template <AllowedFor<Mul> T>
Output<T> operator*(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Mul, T>(a, b);
}
/// Integers are divided as in C; see `div`.
template <AllowedFor<Div> T>
Output<T> operator/(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Div, T>(a, b);
}
template <AllowedFor<Div> T>
Output<T> operator/(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Div, T>(a, b);
}
template <AllowedFor<Mod> T>
Output<T> operator%(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Mod, T>(a, b);
}
template <AllowedFor<Mod> T>
Output<T> operator%(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Mod, T>(a, b);
}
template <AllowedFor<Less> T>
Output<bool> operator<(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Less, T>(a, b);
}
template <AllowedFor<Less> T>
Output<bool> operator<(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Less, T>(a, b);
}
template <AllowedFor<LessEqual> T>
Output<bool> operator<=(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<LessEqual, T>(a, b);
}
template <AllowedFor<LessEqual> T>
Output<bool> operator<=(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<LessEqual, T>(a, b);
}
template <AllowedFor<Greater> T>
Output<bool> operator>(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<Greater, T>(a, b);
}
template <AllowedFor<Greater> T>
Output<bool> operator>(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<Greater, T>(a, b);
}
template <AllowedFor<GreaterEqual> T>
Output<bool> operator>=(const Output<T>& a, const detail::RightOf<T>& b) {
  return detail::combine<GreaterEqual, T>(a, b);
}
template <AllowedFor<GreaterEqual> T>
Output<bool> operator>=(const detail::LeftOf<T>& a, const Output<T>& b) {
  return detail::combine<GreaterEqual, T>(a, b);
}

// The operators && and || work on whole tensors: both sides are evaluated.
inline Output<bool> operator&&(const Output<bool>& a, const Operand<bool>& b) {
  return logical_and(a, b.beside(a), b.at());
}
inline Output<bool> operator&&(const detail::LeftOf<bool>& a, const Output<bool>& b) {
  return logical_and(a.beside(b), b, a.at());
}
inline Output<bool> operator||(const Output<bool>& a, const Operand<bool>& b) {
  return logical_or(a, b.beside(a), b.at());
}
inline Output<bool> operator||(const detail::LeftOf<bool>& a, const Output<bool>& b) {
  return logical_or(a.beside(b), b, a.at());
}

// A unary operator has no parameter that could note its line; it takes the line where its operand was built.
template <AllowedFor<Neg> T>
Output<T> operator-(const Output<T>& x) {
  return apply<Neg>(x, {}, x.is_valid() ? At{.name = {}, .where = x.node().where} : At{});
}
inline Output<bool> operator!(const Output<bool>& x) {
  return logical_not(x, x.is_valid() ? At{.name = {}, .where = x.node().where} : At{});
}

}  // namespace dflow
