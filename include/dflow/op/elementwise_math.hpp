#pragma once

#include <dflow/op/dual.hpp>

#include <type_traits>

namespace dflow {

/// Base of elementwise ops: lets `apply` call `exp(x)`, `select(x > T(0), a, b)` and the others by their plain names, which then mean
/// dflow's overloads for every element type.
struct ElementwiseMath {
  template <class X>
  DFLOW_FN static X exp(X x) {
    return math::exp(x);
  }
  template <class X>
  DFLOW_FN static X log(X x) {
    return math::log(x);
  }
  template <class X>
  DFLOW_FN static X log1p(X x) {
    return math::log1p(x);
  }
  template <class X>
  DFLOW_FN static X expm1(X x) {
    return math::expm1(x);
  }
  template <class X>
  DFLOW_FN static X sqrt(X x) {
    return math::sqrt(x);
  }
  template <class X>
  DFLOW_FN static X sin(X x) {
    return math::sin(x);
  }
  template <class X>
  DFLOW_FN static X cos(X x) {
    return math::cos(x);
  }
  template <class X>
  DFLOW_FN static X tan(X x) {
    return math::tan(x);
  }
  template <class X>
  DFLOW_FN static X tanh(X x) {
    return math::tanh(x);
  }
  template <class X>
  DFLOW_FN static X sinh(X x) {
    return math::sinh(x);
  }
  template <class X>
  DFLOW_FN static X cosh(X x) {
    return math::cosh(x);
  }
  template <class X>
  DFLOW_FN static X atan(X x) {
    return math::atan(x);
  }
  template <class X>
  DFLOW_FN static X erf(X x) {
    return math::erf(x);
  }
  template <class X>
  DFLOW_FN static X erfc(X x) {
    return math::erfc(x);
  }
  template <class X>
  DFLOW_FN static X floor(X x) {
    return math::floor(x);
  }
  template <class X>
  DFLOW_FN static X ceil(X x) {
    return math::ceil(x);
  }
  template <class X>
  DFLOW_FN static X rint(X x) {
    return math::rint(x);
  }
  template <class X>
  DFLOW_FN static X fmod(X a, std::type_identity_t<X> b) {
    return math::fmod(a, b);
  }
  template <class X>
  DFLOW_FN static X lgamma(X x) {
    return math::lgamma(x);
  }
  template <class X>
  DFLOW_FN static X abs(X x) {
    return math::abs(x);
  }
  template <class X>
  DFLOW_FN static X pow(X a, std::type_identity_t<X> b) {
    return math::pow(a, b);
  }
  template <class X>
  DFLOW_FN static X max(X a, std::type_identity_t<X> b) {
    return math::max(a, b);
  }
  template <class X>
  DFLOW_FN static X min(X a, std::type_identity_t<X> b) {
    return math::min(a, b);
  }
  template <class X>
  DFLOW_FN static constexpr X select(bool condition, X a, std::type_identity_t<X> b) {
    return condition ? a : b;
  }
};

}  // namespace dflow
