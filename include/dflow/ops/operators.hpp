#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/literal.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/unary.hpp>

#include <source_location>
#include <type_traits>

/// Arithmetic on typed edges: `x * 2.0f + 1.0f`, `-x`, `i + 1 < limit`. Shapes broadcast; a literal becomes a constant
/// of the edge's element type. Edges of different element types do not mix: `cast` one of them. `==` compares handles;
/// `equal(a, b)` builds a node that compares values.

namespace dflow {

/// A number beside an edge, and the line of the user's program where the operator stands.
template <Element T>
class Literal {
 public:
  template <detail::LiteralFor<T> V>
  Literal(const V& value, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : value_(detail::convert_literal<T>(value)), where_(where) {}

  Output<T> constant_beside(const Output<T>& edge) const {
    if (!edge.is_valid()) return edge;
    return Output<T>::unchecked(detail::any_constant(*edge.graph(), Tensor<T>::full({}, value_), at()));
  }
  At at() const noexcept { return {.name = {}, .where = where_}; }

 private:
  T value_;
  std::source_location where_;
};

/// The right side of an operator: an edge, or a literal.
template <Element T>
class Operand {
 public:
  Operand(const Output<T>& edge, std::source_location where = std::source_location::current())  // NOLINT: converts
      : edge_(edge), literal_(T{}, where), is_literal_(false) {}
  template <detail::LiteralFor<T> V>
  Operand(const V& value, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : literal_(value, where), is_literal_(true) {}

  Output<T> beside(const Output<T>& left) const { return is_literal_ ? literal_.constant_beside(left) : edge_; }
  At at() const noexcept { return literal_.at(); }

 private:
  Output<T> edge_;
  Literal<T> literal_;
  bool is_literal_;
};

namespace detail {

// Parameters of the types below take no part in deduction, which lets literals convert.
template <class T>
using RightOf = std::type_identity_t<Operand<T>>;
template <class T>
using LeftOf = std::type_identity_t<Literal<T>>;

template <class O, Element T>
auto combine(const Output<T>& a, const Operand<T>& b) {
  return apply<O>(a, b.beside(a), {}, b.at());
}
template <class O, Element T>
auto combine(const Literal<T>& a, const Output<T>& b) {
  return apply<O>(a.constant_beside(b), b, {}, a.at());
}

template <Element T, class V>
Output<T> edge_beside(const Output<T>& edge, const V& value, const At& at) {
  return Literal<T>(value, at.where).constant_beside(edge);
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
inline Output<bool> operator&&(const Literal<bool>& a, const Output<bool>& b) {
  return logical_and(a.constant_beside(b), b, a.at());
}
inline Output<bool> operator||(const Output<bool>& a, const Operand<bool>& b) {
  return logical_or(a, b.beside(a), b.at());
}
inline Output<bool> operator||(const Literal<bool>& a, const Output<bool>& b) {
  return logical_or(a.constant_beside(b), b, a.at());
}

// A unary operator has no parameter that could note its line; it takes the line where its operand was built.
template <AllowedFor<Neg> T>
Output<T> operator-(const Output<T>& x) {
  return apply<Neg>(x, {}, x.is_valid() ? At{.name = {}, .where = x.node().where} : At{});
}
inline Output<bool> operator!(const Output<bool>& x) {
  return logical_not(x, x.is_valid() ? At{.name = {}, .where = x.node().where} : At{});
}

/// The functions below take a number as operators do: `equal(i % 2, 0)`, `maximum(x, 0.0f)`, `pow(2.0f, x)`.
template <AllowedFor<Equal> T, detail::LiteralFor<T> V>
Output<bool> equal(const Output<T>& a, const V& b, const At& at = {}) {
  return equal(a, detail::edge_beside(a, b, at), at);
}
template <AllowedFor<NotEqual> T, detail::LiteralFor<T> V>
Output<bool> not_equal(const Output<T>& a, const V& b, const At& at = {}) {
  return not_equal(a, detail::edge_beside(a, b, at), at);
}
template <AllowedFor<Maximum> T, detail::LiteralFor<T> V>
Output<T> maximum(const Output<T>& a, const V& b, const At& at = {}) {
  return maximum(a, detail::edge_beside(a, b, at), at);
}
template <AllowedFor<Minimum> T, detail::LiteralFor<T> V>
Output<T> minimum(const Output<T>& a, const V& b, const At& at = {}) {
  return minimum(a, detail::edge_beside(a, b, at), at);
}
template <AllowedFor<Pow> T, detail::LiteralFor<T> V>
Output<T> pow(const Output<T>& a, const V& b, const At& at = {}) {
  return pow(a, detail::edge_beside(a, b, at), at);
}
template <AllowedFor<Pow> T, detail::LiteralFor<T> V>
Output<T> pow(const V& a, const Output<T>& b, const At& at = {}) {
  return pow(detail::edge_beside(b, a, at), b, at);
}

}  // namespace dflow
