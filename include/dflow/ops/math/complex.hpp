#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/binary.hpp>

#include <array>
#include <complex>
#include <concepts>
#include <string_view>

/// Complex numbers and their real parts, imaginary parts, absolute values and angles.

namespace dflow {

using ComplexPartTypes = TypeList<float, double>;

namespace detail {
/// Shapes broadcast, and the real and the complex type have one precision.
void infer_complex(InferContext& context);
}  // namespace detail

/// The base of Real, Imag, ComplexAbs and Angle: a complex number to a real one of its precision.
template <FixedString Name>
struct ComplexPartOp : StandardOp<Name, ComplexTypes, ComplexPartTypes> {
  using Inputs = In<TypeParam<0>>;
  using Outputs = Out<TypeParam<1>>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tout"};
  static void infer(InferContext& context) { detail::infer_complex(context); }
};

/// real + i imag, broadcast together.
struct Complex : StandardOp<"Complex", ComplexPartTypes, ComplexTypes> {
  using Inputs = In<T, T>;
  using Outputs = Out<U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tout"};
  static void infer(InferContext& context) { detail::infer_complex(context); }
  static void gradient(GradientContext& context);
};
struct Real : ComplexPartOp<"Real"> {
  static void gradient(GradientContext& context);
};
struct Imag : ComplexPartOp<"Imag"> {
  static void gradient(GradientContext& context);
};
/// The absolute value. Its gradient at 0 is 0.
struct ComplexAbs : ComplexPartOp<"ComplexAbs"> {
  static void gradient(GradientContext& context);
};
/// The angle to the positive real axis, in (-pi, pi].
struct Angle : ComplexPartOp<"Angle"> {
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_complex(const AnyOutput& real, const AnyOutput& imag, const At& at);
template <class O, class T>
Output<T> complex_part(const Output<std::complex<T>>& z, const At& at) {
  return Output<T>::unchecked(build<O>({z}, {}, at, type_args<std::complex<T>, T>()));
}
}  // namespace detail

/// real + i imag, of float or double; shapes broadcast.
///
/// ```cpp
/// auto z = df::complex(df::cos(phi), df::sin(phi));
/// ```
/// Errors: InvalidArgument if the shapes do not broadcast together.
template <class A, class B>
  requires Accepts<Sub, A, B> && std::floating_point<ElementFor<Sub, A, B>>
Output<std::complex<ElementFor<Sub, A, B>>> complex(const A& real, const B& imag, const At& at = {}) {
  const auto edges = detail::edges_for<Sub>(at, real, imag);
  return Output<std::complex<ElementFor<Sub, A, B>>>::unchecked(detail::any_complex(edges[0], edges[1], at));
}

/// The real part of z.
template <std::floating_point T>
Output<T> real(const Output<std::complex<T>>& z, const At& at = {}) {
  return detail::complex_part<Real>(z, at);
}
/// The imaginary part of z.
template <std::floating_point T>
Output<T> imag(const Output<std::complex<T>>& z, const At& at = {}) {
  return detail::complex_part<Imag>(z, at);
}
/// |z|, without an overflow on the way. Its gradient at 0 is 0.
template <std::floating_point T>
Output<T> complex_abs(const Output<std::complex<T>>& z, const At& at = {}) {
  return detail::complex_part<ComplexAbs>(z, at);
}
template <std::floating_point T>
Output<T> abs(const Output<std::complex<T>>& z, const At& at = {}) {
  return detail::complex_part<ComplexAbs>(z, at);
}
/// The angle of z to the positive real axis, in (-pi, pi]; 0 for 0.
template <std::floating_point T>
Output<T> angle(const Output<std::complex<T>>& z, const At& at = {}) {
  return detail::complex_part<Angle>(z, at);
}

using ComplexOps = TypeList<Complex, Real, Imag, ComplexAbs, Angle>;

}  // namespace dflow
