#pragma once

#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/ops/math/complex.hpp>

#include <cmath>
#include <complex>
#include <memory>
#include <type_traits>

namespace dflow {

namespace cpu {

namespace detail {

/// The value of an op for one element of each input.
template <class O>
struct ComplexFunction;
template <>
struct ComplexFunction<Complex> {
  template <class R>
  static std::complex<R> of(R real, R imag) {
    return {real, imag};
  }
};
template <>
struct ComplexFunction<Real> {
  template <class R>
  static R of(std::complex<R> z) {
    return z.real();
  }
};
template <>
struct ComplexFunction<Imag> {
  template <class R>
  static R of(std::complex<R> z) {
    return z.imag();
  }
};
template <>
struct ComplexFunction<ComplexAbs> {
  template <class R>
  static R of(std::complex<R> z) {
    return std::hypot(z.real(), z.imag());
  }
};
template <>
struct ComplexFunction<Angle> {
  template <class R>
  static R of(std::complex<R> z) {
    return std::atan2(z.imag(), z.real());
  }
};

DFLOW_BEGIN_INDEPENDENT_LOOPS
template <class O, class R>
const char* complex_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  if constexpr (std::is_same_v<O, Complex>) {
    const R *a = static_cast<const R*>(inputs[0]), *b = static_cast<const R*>(inputs[1]);
    auto* y = static_cast<std::complex<R>*>(output);
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = ComplexFunction<O>::template of<R>(a[i], b[i]);
  } else {
    const auto* z = static_cast<const std::complex<R>*>(inputs[0]);
    R* y = static_cast<R*>(output);
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = ComplexFunction<O>::template of<R>(z[i]);
  }
  return nullptr;
}
DFLOW_END_INDEPENDENT_LOOPS

template <class O, class R>
ElementwiseCode complex_code() {
  constexpr bool makes = std::is_same_v<O, Complex>;
  constexpr bool is_cheap = makes || std::is_same_v<O, Real> || std::is_same_v<O, Imag>;
  ElementwiseCode code;
  code.dense = &complex_loop<O, R>;
  code.num_inputs = makes ? 2 : 1;
  code.input_bytes = makes ? sizeof(R) : 2 * sizeof(R);
  code.output_bytes = makes ? 2 * sizeof(R) : sizeof(R);
  code.ns_per_element = is_cheap ? 0.5f : 10.0f;
  return code;
}

}  // namespace detail

template <class O>
struct ComplexKernel {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) {
    const DType given = init.inputs[0].dtype;
    const bool is_double = given == DType::float64 || given == DType::complex128;
    return make_elementwise_kernel(init,
                                   is_double ? detail::complex_code<O, double>() : detail::complex_code<O, float>());
  }
};

}  // namespace cpu

template <>
struct Kernel<Complex, Cpu> : cpu::ComplexKernel<Complex> {};
template <>
struct Kernel<Real, Cpu> : cpu::ComplexKernel<Real> {};
template <>
struct Kernel<Imag, Cpu> : cpu::ComplexKernel<Imag> {};
template <>
struct Kernel<ComplexAbs, Cpu> : cpu::ComplexKernel<ComplexAbs> {};
template <>
struct Kernel<Angle, Cpu> : cpu::ComplexKernel<Angle> {};

}  // namespace dflow
