#pragma once

#include <dflow/op/elementwise.hpp>
#include <dflow/op/elementwise_math.hpp>
#include <dflow/op/gradient_context.hpp>

#include <tuple>
#include <utility>

namespace dflow {

/// The partial derivative of elementwise op `F` by its argument `I`, times the incoming gradient. It is an
/// elementwise op of F's arguments and dy. Its expression is F's own, evaluated on dual numbers.
template <class F, int I, class Arguments = ArgumentsOf<F>>
struct Derivative;

namespace detail {

template <class F>
inline constexpr int derivative_order = 0;
template <class F, int I, class A>
inline constexpr int derivative_order<Derivative<F, I, A>> = derivative_order<F> + 1;

/// "SwishGradient0" for the first argument's derivative.
template <class F, int I>
consteval auto derivative_name() {
  constexpr std::string_view suffix = "Gradient";
  char name[F::name.size() + suffix.size() + 2]{};
  std::size_t n = 0;
  for (const char c : F::name) name[n++] = c;
  for (const char c : suffix) name[n++] = c;
  name[n] = static_cast<char>('0' + I);
  return FixedString(name);
}

}  // namespace detail

template <class F, int I, std::size_t... A>
struct Derivative<F, I, std::index_sequence<A...>>
    : ElementwiseOp<detail::derivative_name<F, I>(), element_t<0, typename F::TypeParams>> {
  static constexpr bool in_library = F::in_library;
  static constexpr bool chains = F::chains;
  static constexpr int max_arguments = F::max_arguments + 1;

  template <class T>
  DFLOW_FN static T apply(detail::For<T, A>... x, T dy) {
    return dy * F::template apply<Dual<T>>(Dual<T>{x, T(static_cast<int>(A) == I)}...).derivative;
  }
};

namespace detail {

/// `op_def<O>`, nameable before it is defined.
template <class O>
const OpDef& op_def_of();

/// Derivatives are ops of their own up to this order; past it an op needs a gradient written by hand.
inline constexpr int max_derivative_order = 2;
inline constexpr int most_derivative_arguments =
    ElementwiseOp<"", TypeList<float>>::max_arguments + max_derivative_order;

template <class O>
concept HasGradient = requires(GradientContext& context) { O::gradient(context); };

template <class O>
concept HasTypedGradient =
    (O::TypeParams::size > 0) &&
    requires(const NodeView<O, element_t<0, element_t<0, typename O::TypeParams>>>& view,
             Output<element_t<0, element_t<0, typename O::TypeParams>>> dy) { O::gradient(view, dy); };

template <class List>
inline constexpr bool all_floating = false;
template <class... Ts>
inline constexpr bool all_floating<TypeList<Ts...>> = (is_floating(dtype_of<Ts>) && ...);

template <class O>
constexpr bool derives_gradient() {
  if constexpr (ElementwiseOpType<O>) {
    return !HasGradient<O> && !HasTypedGradient<O> && !O::gradient_stops && !is_predicate<O> &&
           all_floating<element_t<0, typename O::TypeParams>> && derivative_order<O> < max_derivative_order;
  } else {
    return false;
  }
}

AnyOutput build_derivative(const GradientContext& context, const OpDef& op, int input);

template <class O, std::size_t... I>
void derived_gradient(GradientContext& context, std::index_sequence<I...>) {
  (context.set_dx(static_cast<int>(I), build_derivative(context, op_def_of<Derivative<O, static_cast<int>(I)>>(), I)),
   ...);
}

template <class Result>
void set_typed_gradients(GradientContext& context, const Result& result) {
  if constexpr (requires { result.endpoint(); }) {
    context.set_dx(0, result);
  } else {
    int i = 0;
    std::apply([&](const auto&... dx) { (context.set_dx(i++, dx), ...); }, result);
  }
}

template <class O, class T>
bool typed_gradient_for(GradientContext& context) {
  if (context.node().types[0] != dtype_of<T>) return false;
  set_typed_gradients(context, O::gradient(NodeView<O, T>(context), Output<T>(context.dy())));
  return true;
}

template <class O, class... Ts>
void typed_gradient(GradientContext& context, TypeList<Ts...>) {
  (typed_gradient_for<O, Ts>(context) || ...);
}

template <class O>
constexpr auto gradient_of() -> void (*)(GradientContext&) {
  if constexpr (HasGradient<O>) {
    return &O::gradient;
  } else if constexpr (HasTypedGradient<O>) {
    return [](GradientContext& context) { typed_gradient<O>(context, element_t<0, typename O::TypeParams>{}); };
  } else if constexpr (derives_gradient<O>()) {
    return [](GradientContext& context) { derived_gradient<O>(context, ArgumentsOf<O>{}); };
  } else {
    return nullptr;
  }
}

template <class O>
constexpr bool gradient_stops_of() {
  if constexpr (ElementwiseOpType<O>) {
    return O::gradient_stops || is_predicate<O>;
  } else {
    return O::gradient_stops;
  }
}

}  // namespace detail

}  // namespace dflow
