#pragma once

#include <dflow/op/op.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

template <class O, class T, class... Arguments>
constexpr int count_arguments() {
  if constexpr (requires { O::template apply<T>(std::declval<Arguments>()...); }) {
    return static_cast<int>(sizeof...(Arguments));
  } else if constexpr (static_cast<int>(sizeof...(Arguments)) < O::max_arguments) {
    return count_arguments<O, T, Arguments..., T>();
  } else {
    static_assert(sizeof(O) == 0,
                  "an elementwise op needs `template <class T> static R apply(T x)` of 1 to 4 arguments");
  }
}

/// `X`, for every index `I` of a pack.
template <class X, std::size_t I>
struct Repeated {
  using type = X;
};
template <class X, std::size_t I>
using For = typename Repeated<X, I>::type;

template <class O, class T, std::size_t... I>
auto elementwise_result(std::index_sequence<I...>) -> decltype(O::template apply<T>(std::declval<For<T, I>>()...));

template <std::size_t... I>
auto elementwise_inputs(std::index_sequence<I...>) -> In<For<TypeParam<0>, I>...>;

}  // namespace detail

/// The element type by which the shape of an elementwise op's expression is looked at: its first allowed one.
template <ElementwiseOpType O>
using SpecimenType = element_t<0, element_t<0, typename O::TypeParams>>;

template <ElementwiseOpType O>
inline constexpr int elementwise_arity = detail::count_arguments<O, SpecimenType<O>, SpecimenType<O>>();

/// One index for each argument of the expression.
template <ElementwiseOpType O>
using ArgumentsOf = std::make_index_sequence<elementwise_arity<O>>;

template <ElementwiseOpType O, class T>
using ElementwiseResultOf = decltype(detail::elementwise_result<O, T>(ArgumentsOf<O>{}));

/// The op may refuse elements of the types `Ts`.
template <class O, class... Ts>
concept ChecksElements = requires(const Ts&... xs) {
  { O::check(xs...) } -> std::same_as<const char*>;
};

/// The expression yields bool although its arguments need not be bool.
template <ElementwiseOpType O>
inline constexpr bool is_predicate =
    std::same_as<ElementwiseResultOf<O, SpecimenType<O>>, bool> && !std::same_as<SpecimenType<O>, bool>;

/// The type that a kernel evaluates the expression in, for elements of type T. The library's ops compute half
/// precision in float and round once.
template <ElementwiseOpType O, class T>
using ElementwiseComputeType = std::conditional_t<O::in_library && math::HalfPrecision<T>, float, T>;

/// The type that a kernel stores the result in.
template <ElementwiseOpType O, class T>
using ElementwiseStoredType = std::conditional_t<std::same_as<ElementwiseResultOf<O, T>, bool>, bool, T>;

namespace detail {

template <class O>
struct SignatureOf {
  using Inputs = typename O::Inputs;
  using Outputs = typename O::Outputs;
};
template <ElementwiseOpType O>
struct SignatureOf<O> {
  using Inputs = decltype(elementwise_inputs(ArgumentsOf<O>{}));
  using Outputs = std::conditional_t<is_predicate<O>, Out<bool>, Out<TypeParam<0>>>;
};

}  // namespace detail

/// An op's inputs and outputs; an elementwise op's follow from its expression.
template <OpType O>
using InputsOf = typename detail::SignatureOf<O>::Inputs;
template <OpType O>
using OutputsOf = typename detail::SignatureOf<O>::Outputs;

}  // namespace dflow
