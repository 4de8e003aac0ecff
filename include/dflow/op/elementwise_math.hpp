#pragma once

/// Public: the functions that an elementwise op of your own calls.

#include <dflow/op/dual.hpp>

#include <type_traits>

namespace dflow {

/// Base of elementwise ops: lets `apply` call `exp(x)`, `select(x > T(0), a, b)` and the other functions by their plain
/// names. The names then mean dflow's overloads for every element type (`op/scalar_math.hpp`). A number of any other
/// type, for example a lane of a vector loop, brings its functions as static members.
struct ElementwiseMath {
#define DFLOW_FUNCTION_OF_ONE(function)           \
  template <class X>                              \
  DFLOW_FN static X function(X x) {               \
    if constexpr (requires { X::function(x); }) { \
      return X::function(x);                      \
    } else {                                      \
      return math::function(x);                   \
    }                                             \
  }
#define DFLOW_FUNCTION_OF_TWO(function)                        \
  template <class X>                                           \
  DFLOW_FN static X function(X a, std::type_identity_t<X> b) { \
    if constexpr (requires { X::function(a, b); }) {           \
      return X::function(a, b);                                \
    } else {                                                   \
      return math::function(a, b);                             \
    }                                                          \
  }
  DFLOW_FUNCTION_OF_ONE(exp)
  DFLOW_FUNCTION_OF_ONE(log)
  DFLOW_FUNCTION_OF_ONE(log1p)
  DFLOW_FUNCTION_OF_ONE(expm1)
  DFLOW_FUNCTION_OF_ONE(sqrt)
  DFLOW_FUNCTION_OF_ONE(sin)
  DFLOW_FUNCTION_OF_ONE(cos)
  DFLOW_FUNCTION_OF_ONE(tan)
  DFLOW_FUNCTION_OF_ONE(tanh)
  DFLOW_FUNCTION_OF_ONE(sinh)
  DFLOW_FUNCTION_OF_ONE(cosh)
  DFLOW_FUNCTION_OF_ONE(atan)
  DFLOW_FUNCTION_OF_ONE(erf)
  DFLOW_FUNCTION_OF_ONE(erfc)
  DFLOW_FUNCTION_OF_ONE(floor)
  DFLOW_FUNCTION_OF_ONE(ceil)
  DFLOW_FUNCTION_OF_ONE(rint)
  DFLOW_FUNCTION_OF_ONE(lgamma)
  DFLOW_FUNCTION_OF_ONE(abs)
  DFLOW_FUNCTION_OF_TWO(fmod)
  DFLOW_FUNCTION_OF_TWO(pow)
  DFLOW_FUNCTION_OF_TWO(max)
  DFLOW_FUNCTION_OF_TWO(min)
#undef DFLOW_FUNCTION_OF_ONE
#undef DFLOW_FUNCTION_OF_TWO

  /// `condition ? a : b`. Both are computed; this is the form that vectorises.
  template <class X>
  DFLOW_FN static constexpr X select(bool condition, X a, std::type_identity_t<X> b) {
    return condition ? a : b;
  }
};

}  // namespace dflow
