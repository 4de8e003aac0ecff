#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

// Everything in this file works element by element with NumPy broadcasting and yields bool. A NaN is unequal to
// everything and not ordered.

struct Less : StandardElementwiseOp<"Less", RealTypes> {
  template <class T>
  DFLOW_FN static bool apply(T a, T b) {
    return a < b;
  }
};

struct LessEqual : StandardElementwiseOp<"LessEqual", RealTypes> {
  template <class T>
  DFLOW_FN static bool apply(T a, T b) {
    return a <= b;
  }
};

struct Greater : StandardElementwiseOp<"Greater", RealTypes> {
  template <class T>
  DFLOW_FN static bool apply(T a, T b) {
    return a > b;
  }
};

struct GreaterEqual : StandardElementwiseOp<"GreaterEqual", RealTypes> {
  template <class T>
  DFLOW_FN static bool apply(T a, T b) {
    return a >= b;
  }
};

struct Equal : StandardElementwiseOp<"Equal", AllTypes> {
  template <class T>
  DFLOW_FN static bool apply(const T& a, const T& b) {
    return a == b;
  }
};

struct NotEqual : StandardElementwiseOp<"NotEqual", AllTypes> {
  template <class T>
  DFLOW_FN static bool apply(const T& a, const T& b) {
    return a != b;
  }
};

struct LogicalAnd : StandardElementwiseOp<"LogicalAnd", TypeList<bool>> {
  static constexpr bool gradient_stops = true;
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return a && b;
  }
};

struct LogicalOr : StandardElementwiseOp<"LogicalOr", TypeList<bool>> {
  static constexpr bool gradient_stops = true;
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return a || b;
  }
};

struct LogicalNot : StandardElementwiseOp<"LogicalNot", TypeList<bool>> {
  static constexpr bool gradient_stops = true;
  template <class T>
  DFLOW_FN static T apply(T x) {
    return !x;
  }
};

using ComparisonOps = TypeList<Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual>;
using LogicalOps = TypeList<LogicalAnd, LogicalOr, LogicalNot>;

/// a < b.
///
/// Errors of all builders of this file: InvalidArgument if the shapes do not broadcast together.
template <class A, class B>
  requires Accepts<Less, A, B>
Output<bool> less(const A& a, const B& b, const At& at = {}) {
  return apply<Less>(a, b, {}, at);
}
/// a <= b.
template <class A, class B>
  requires Accepts<LessEqual, A, B>
Output<bool> less_equal(const A& a, const B& b, const At& at = {}) {
  return apply<LessEqual>(a, b, {}, at);
}
/// a > b.
template <class A, class B>
  requires Accepts<Greater, A, B>
Output<bool> greater(const A& a, const B& b, const At& at = {}) {
  return apply<Greater>(a, b, {}, at);
}
/// a >= b.
template <class A, class B>
  requires Accepts<GreaterEqual, A, B>
Output<bool> greater_equal(const A& a, const B& b, const At& at = {}) {
  return apply<GreaterEqual>(a, b, {}, at);
}
/// a == b; strings and bool as well.
template <class A, class B>
  requires Accepts<Equal, A, B>
Output<bool> equal(const A& a, const B& b, const At& at = {}) {
  return apply<Equal>(a, b, {}, at);
}
/// a != b; strings and bool as well.
template <class A, class B>
  requires Accepts<NotEqual, A, B>
Output<bool> not_equal(const A& a, const B& b, const At& at = {}) {
  return apply<NotEqual>(a, b, {}, at);
}

template <class A, class B>
  requires Accepts<LogicalAnd, A, B>
Output<bool> logical_and(const A& a, const B& b, const At& at = {}) {
  return apply<LogicalAnd>(a, b, {}, at);
}
template <class A, class B>
  requires Accepts<LogicalOr, A, B>
Output<bool> logical_or(const A& a, const B& b, const At& at = {}) {
  return apply<LogicalOr>(a, b, {}, at);
}
Output<bool> logical_not(const Output<bool>& x, const At& at = {});

}  // namespace dflow
