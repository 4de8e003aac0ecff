#pragma once

#include <dflow/op/op.hpp>

#include <concepts>
#include <tuple>
#include <type_traits>

namespace dflow {

namespace detail {

template <class O, class T>
constexpr int count_arguments() {
  if constexpr (requires(T x) { O::template apply<T>(x); }) {
    return 1;
  } else if constexpr (requires(T x) { O::template apply<T>(x, x); }) {
    return 2;
  } else if constexpr (requires(T x) { O::template apply<T>(x, x, x); }) {
    return 3;
  } else if constexpr (requires(T x) { O::template apply<T>(x, x, x, x); }) {
    return 4;
  } else {
    static_assert(sizeof(O) == 0, "an elementwise op needs `template <class T> static R apply(T x)` of 1 to 4 arguments");
  }
}

template <class O, class T, int arity>
struct ElementwiseResult;
template <class O, class T>
struct ElementwiseResult<O, T, 1> {
  using type = decltype(O::template apply<T>(T{}));
};
template <class O, class T>
struct ElementwiseResult<O, T, 2> {
  using type = decltype(O::template apply<T>(T{}, T{}));
};
template <class O, class T>
struct ElementwiseResult<O, T, 3> {
  using type = decltype(O::template apply<T>(T{}, T{}, T{}));
};
template <class O, class T>
struct ElementwiseResult<O, T, 4> {
  using type = decltype(O::template apply<T>(T{}, T{}, T{}, T{}));
};

}  // namespace detail

/// The element type by which the shape of an elementwise op's expression is looked at: its first allowed one.
template <ElementwiseOpType O>
using SpecimenType = element_t<0, element_t<0, typename O::TypeParams>>;

template <ElementwiseOpType O>
inline constexpr int elementwise_arity = detail::count_arguments<O, SpecimenType<O>>();

template <ElementwiseOpType O, class T>
using ElementwiseResultOf = typename detail::ElementwiseResult<O, T, elementwise_arity<O>>::type;

/// The expression yields bool although its arguments need not be bool.
template <ElementwiseOpType O>
inline constexpr bool is_predicate =
    std::same_as<ElementwiseResultOf<O, SpecimenType<O>>, bool> && !std::same_as<SpecimenType<O>, bool>;

namespace detail {

template <int arity>
struct ElementwiseInputs;
template <>
struct ElementwiseInputs<1> {
  using type = In<TypeParam<0>>;
};
template <>
struct ElementwiseInputs<2> {
  using type = In<TypeParam<0>, TypeParam<0>>;
};
template <>
struct ElementwiseInputs<3> {
  using type = In<TypeParam<0>, TypeParam<0>, TypeParam<0>>;
};
template <>
struct ElementwiseInputs<4> {
  using type = In<TypeParam<0>, TypeParam<0>, TypeParam<0>, TypeParam<0>>;
};

template <class O>
struct SignatureOf {
  using Inputs = typename O::Inputs;
  using Outputs = typename O::Outputs;
};
template <ElementwiseOpType O>
struct SignatureOf<O> {
  using Inputs = typename ElementwiseInputs<elementwise_arity<O>>::type;
  using Outputs = std::conditional_t<is_predicate<O>, Out<bool>, Out<TypeParam<0>>>;
};

}  // namespace detail

/// An op's inputs and outputs; an elementwise op's follow from its expression.
template <OpType O>
using InputsOf = typename detail::SignatureOf<O>::Inputs;
template <OpType O>
using OutputsOf = typename detail::SignatureOf<O>::Outputs;

}  // namespace dflow
