#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/matmul.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

/// Functions of TensorFlow's library, and ops of TensorFlow, that other ops express.

namespace dflow {

/// The flags of sparse_matmul.
struct SparseMatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  bool a_is_sparse = false;  ///< a hint without effect
  bool b_is_sparse = false;  ///< a hint without effect
};

namespace detail {

AnyOutput any_truediv(const AnyOutput& x, const AnyOutput& y, const At& at);
AnyOutput any_floordiv(const AnyOutput& x, const AnyOutput& y, const At& at);
AnyOutput any_sparse_matmul(const AnyOutput& a, const AnyOutput& b, const SparseMatMulAttrs& attrs, const At& at);
/// x between the scalars, as the element type `to`.
AnyOutput cast_between(const AnyOutput& x, const AnyTensor& low, const AnyTensor& high, DType to, const At& at);

/// The type of a quotient of Ts that is not rounded to a whole number.
template <class T>
using TrueQuotient = std::conditional_t<std::is_integral_v<T>, std::conditional_t<(sizeof(T) <= 2), float, double>, T>;

/// `value`, or the nearest T.
template <class T, class V>
constexpr T nearest_in(V value) {
  if (std::cmp_less(value, std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return std::cmp_greater(value, std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

/// The largest finite number of a real type.
template <class T>
constexpr double largest_number() {
  if constexpr (std::same_as<T, Half>) return 65504;
  if constexpr (std::same_as<T, BFloat16>) return 0x1.FEp127;
  if constexpr (!is_floating_element<T> || std::is_arithmetic_v<T>) {
    return static_cast<double>(std::numeric_limits<T>::max());
  }
}

/// Whether `cast` alone leaves no number beyond the range of To.
template <class T, class To>
inline constexpr bool cast_saturates =
    std::same_as<T, To> ||
    (std::is_integral_v<To> ? !std::is_integral_v<T> : largest_number<T>() <= largest_number<To>());

/// The ends of the numbers of T that To holds, in the type that they are compared in.
template <class T, class To>
std::pair<AnyTensor, AnyTensor> common_range() {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<To>) {
    return {Tensor<T>(nearest_in<T>(std::numeric_limits<To>::lowest())),
            Tensor<T>(nearest_in<T>(std::numeric_limits<To>::max()))};
  } else if constexpr (std::is_integral_v<T>) {  // To is Half
    constexpr auto end = static_cast<std::int64_t>(largest_number<To>());
    return {Tensor<T>(nearest_in<T>(-end)), Tensor<T>(nearest_in<T>(end))};
  } else {
    using Wide = std::conditional_t<std::same_as<T, double>, double, float>;
    return {Tensor<Wide>(static_cast<Wide>(-largest_number<To>())),
            Tensor<Wide>(static_cast<Wide>(largest_number<To>()))};
  }
}

}  // namespace detail

/// Whether exactly one of both is true. Shapes broadcast.
template <class A, class B>
  requires Accepts<LogicalAnd, A, B>
Output<bool> logical_xor(const A& a, const B& b, const At& at = {}) {
  return apply<NotEqual>(a, b, {}, at);
}

/// x / y, as Python 3 divides: integers of up to 16 bits are divided as float, others as double.
///
/// Errors: as div.
template <class A, class B>
  requires Accepts<Div, A, B>
auto truediv(const A& x, const B& y, const At& at = {}) {
  const auto edges = detail::edges_for<Div>(at, x, y);
  return Output<detail::TrueQuotient<ElementFor<Div, A, B>>>::unchecked(detail::any_truediv(edges[0], edges[1], at));
}

/// x / y rounded down, as Python's // divides: -7 by 2 is -4.
///
/// Errors: as div; in the step, if an integer is divided by 0.
template <class A, class B>
  requires Accepts<Mod, A, B>
Output<ElementFor<Mod, A, B>> floordiv(const A& x, const B& y, const At& at = {}) {
  const auto edges = detail::edges_for<Mod>(at, x, y);
  return Output<ElementFor<Mod, A, B>>::unchecked(detail::any_floordiv(edges[0], edges[1], at));
}

/// x as real numbers of the type `To`. A number beyond the range of To becomes the end of that range.
template <Element To, class T>
  requires contains_v<T, RealTypes> && contains_v<To, RealTypes>
Output<To> saturate_cast(const Output<T>& x, const At& at = {}) {
  if constexpr (detail::cast_saturates<T, To>) {
    return cast<To>(x, at);
  } else {
    const auto [low, high] = detail::common_range<T, To>();
    return Output<To>::unchecked(detail::cast_between(x, low, high, dtype_of<To>, at));
  }
}

/// The product of two matrices of float or bfloat16, as float: TensorFlow's SparseMatMul. That many elements are zero
/// is no gain here: the matrices are multiplied as `matmul` does.
///
/// Errors: as matmul.
template <class TA, class TB>
  requires contains_v<TA, TypeList<float, BFloat16>> && contains_v<TB, TypeList<float, BFloat16>>
Output<float> sparse_matmul(const Output<TA>& a, const Output<TB>& b, SparseMatMulAttrs attrs = {}, const At& at = {}) {
  return Output<float>::unchecked(detail::any_sparse_matmul(a, b, attrs, at));
}

}  // namespace dflow
