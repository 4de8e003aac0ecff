#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <complex>
#include <cstdint>
#include <type_traits>

namespace dflow {

class GradientContext;

namespace detail {

/// Fourier transforms of more elements than this along a dimension are refused.
inline constexpr std::int64_t max_fourier_length = std::int64_t{1} << 28;

void infer_fourier(InferContext& context, int rank);
void infer_real_fourier(InferContext& context, int rank, bool inverse);
AnyOutput any_real_fourier(const AnyOutput& x, const IndexList& fft_length, int rank, bool inverse, const At& at);
/// Sets the gradient of a real transform.
void set_real_fourier_gradient(GradientContext& context, int rank, bool inverse);
/// Sets dx = conj(transform(conj(dy))), the adjoint of a complex transform.
using Transform = AnyOutput (*)(const AnyOutput& x);
void set_fourier_gradient(GradientContext& context, Transform transform);

}  // namespace detail

/// The discrete Fourier transform over the innermost `rank` dimensions, y[k] = sum of x[j] exp(-2 pi i j k / n), or
/// its inverse. The inverse divides by the number of elements. All extents are allowed.
template <class Self, FixedString Name, int Rank, bool Inverse>
struct FourierOp : StandardOp<Name, ComplexTypes> {
  static constexpr std::array<std::string_view, 1> type_names{"Tcomplex"};
  static constexpr int fourier_rank = Rank;
  static constexpr bool is_inverse = Inverse;
  static void infer(InferContext& context) { detail::infer_fourier(context, Rank); }
  static void gradient(GradientContext& context) {
    detail::set_fourier_gradient(context, [](const AnyOutput& x) -> AnyOutput { return build<Self>({x}); });
  }
};

struct Fft : FourierOp<Fft, "FFT", 1, false> {};
struct Fft2d : FourierOp<Fft2d, "FFT2D", 2, false> {};
struct Fft3d : FourierOp<Fft3d, "FFT3D", 3, false> {};
struct Ifft : FourierOp<Ifft, "IFFT", 1, true> {};
struct Ifft2d : FourierOp<Ifft2d, "IFFT2D", 2, true> {};
struct Ifft3d : FourierOp<Ifft3d, "IFFT3D", 3, true> {};

/// The transform of real elements over the innermost `rank` dimensions, cut or filled up with zeros to `fft_length`
/// [rank]. It gives the first n / 2 + 1 of the n coefficients of the last dimension, which determine the others; if n
/// is 0, it gives none.
template <FixedString Name, int Rank>
struct RealFourierOp : StandardOp<Name, TypeList<float, double>, ComplexTypes> {
  using Op = StandardOp<Name, TypeList<float, double>, ComplexTypes>;
  using Inputs = In<typename Op::T, std::int32_t>;
  using Outputs = Out<typename Op::U>;
  static constexpr std::array<std::string_view, 2> type_names{"Treal", "Tcomplex"};
  static constexpr int fourier_rank = Rank;
  static void infer(InferContext& context) { detail::infer_real_fourier(context, Rank, false); }
  static void gradient(GradientContext& context) { detail::set_real_fourier_gradient(context, Rank, false); }
};

struct Rfft : RealFourierOp<"RFFT", 1> {};
struct Rfft2d : RealFourierOp<"RFFT2D", 2> {};
struct Rfft3d : RealFourierOp<"RFFT3D", 3> {};

/// The inverse. Input: the first fft_length / 2 + 1 coefficients of the last dimension, cut or filled up with zeros,
/// and all coefficients of the other dimensions. Output: real elements of the extents `fft_length` [rank].
template <FixedString Name, int Rank>
struct RealInverseFourierOp : StandardOp<Name, TypeList<float, double>, ComplexTypes> {
  using Op = StandardOp<Name, TypeList<float, double>, ComplexTypes>;
  using Inputs = In<typename Op::U, std::int32_t>;
  using Outputs = Out<typename Op::T>;
  static constexpr std::array<std::string_view, 2> type_names{"Treal", "Tcomplex"};
  static constexpr int fourier_rank = Rank;
  static void infer(InferContext& context) { detail::infer_real_fourier(context, Rank, true); }
  static void gradient(GradientContext& context) { detail::set_real_fourier_gradient(context, Rank, true); }
};

struct Irfft : RealInverseFourierOp<"IRFFT", 1> {};
struct Irfft2d : RealInverseFourierOp<"IRFFT2D", 2> {};
struct Irfft3d : RealInverseFourierOp<"IRFFT3D", 3> {};

/// How many of the innermost dimensions a gradient transforms: 1, 2 or 3.
struct RealFourierGradAttrs {
  std::int64_t rank = 1;
};

/// The gradient of RFFT, RFFT2D and RFFT3D: y's gradient, fft_length and the shape of x give x's.
struct RfftGrad : StandardOp<"RFFTGrad", TypeList<float, double>, ComplexTypes> {
  using Attrs = RealFourierGradAttrs;
  using Inputs = In<U, std::int32_t, std::int32_t>;
  using Outputs = Out<T>;
  static constexpr std::array<std::string_view, 2> type_names{"Treal", "Tcomplex"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of IRFFT, IRFFT2D and IRFFT3D, likewise.
struct IrfftGrad : StandardOp<"IRFFTGrad", TypeList<float, double>, ComplexTypes> {
  using Attrs = RealFourierGradAttrs;
  using Inputs = In<T, std::int32_t, std::int32_t>;
  using Outputs = Out<U>;
  static constexpr std::array<std::string_view, 2> type_names{"Treal", "Tcomplex"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [...batch, n]; 2d and 3d over the last two and three dimensions.
///
/// Errors: InvalidArgument if x has too few dimensions; in the step if one is above 2^28.
template <AllowedFor<Fft> T>
Output<T> fft(const Output<T>& x, const At& at = {}) {
  return apply<Fft>(x, {}, at);
}
template <AllowedFor<Fft> T>
Output<T> fft2d(const Output<T>& x, const At& at = {}) {
  return apply<Fft2d>(x, {}, at);
}
template <AllowedFor<Fft> T>
Output<T> fft3d(const Output<T>& x, const At& at = {}) {
  return apply<Fft3d>(x, {}, at);
}
template <AllowedFor<Fft> T>
Output<T> ifft(const Output<T>& x, const At& at = {}) {
  return apply<Ifft>(x, {}, at);
}
template <AllowedFor<Fft> T>
Output<T> ifft2d(const Output<T>& x, const At& at = {}) {
  return apply<Ifft2d>(x, {}, at);
}
template <AllowedFor<Fft> T>
Output<T> ifft3d(const Output<T>& x, const At& at = {}) {
  return apply<Ifft3d>(x, {}, at);
}

/// x: [...batch, n] gives [...batch, fft_length / 2 + 1]; without `fft_length`, the extents are x's.
///
/// Errors: InvalidArgument if x has too few dimensions, or if fft_length is negative, above 2^28, or does not have one
/// entry for each transformed dimension.
template <class T>
  requires std::is_floating_point_v<T>
Output<std::complex<T>> rfft(const Output<T>& x, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<std::complex<T>>::unchecked(detail::any_real_fourier(x, fft_length, 1, false, at));
}
template <class T>
  requires std::is_floating_point_v<T>
Output<std::complex<T>> rfft2d(const Output<T>& x, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<std::complex<T>>::unchecked(detail::any_real_fourier(x, fft_length, 2, false, at));
}
template <class T>
  requires std::is_floating_point_v<T>
Output<std::complex<T>> rfft3d(const Output<T>& x, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<std::complex<T>>::unchecked(detail::any_real_fourier(x, fft_length, 3, false, at));
}

/// y: [...batch, n / 2 + 1] gives [...batch, fft_length]; without `fft_length`, the length is the even n.
///
/// Errors: as rfft.
template <class T>
Output<T> irfft(const Output<std::complex<T>>& y, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_real_fourier(y, fft_length, 1, true, at));
}
template <class T>
Output<T> irfft2d(const Output<std::complex<T>>& y, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_real_fourier(y, fft_length, 2, true, at));
}
template <class T>
Output<T> irfft3d(const Output<std::complex<T>>& y, const IndexList& fft_length = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_real_fourier(y, fft_length, 3, true, at));
}

}  // namespace dflow
