#pragma once

#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/ops/math/cast.hpp>

#include <limits>

namespace dflow {

namespace cpu {

namespace detail {

/// One element converted as `cast` says.
template <class To, class From>
constexpr To converted(From x) {
  if constexpr (is_complex_element<From>) {
    if constexpr (is_complex_element<To>) {
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    } else if constexpr (std::same_as<To, bool>) {
      return x != From(0);
    } else {
      return converted<To>(x.real());
    }
  } else if constexpr (is_complex_element<To>) {
    return To(converted<typename To::value_type>(x));
  } else if constexpr (std::same_as<To, bool>) {
    return x != From(0);
  } else if constexpr (math::HalfPrecision<From> && !std::same_as<From, To>) {
    return converted<To>(static_cast<float>(x));
  } else if constexpr (std::floating_point<From> && std::integral<To>) {
    // Both bounds are powers of two, which From holds exactly; the larger one is the first number too large.
    // NOLINTNEXTLINE(bugprone-integer-division): rounded down on purpose
    constexpr From above = From(std::numeric_limits<To>::max() / 2 + 1) * 2;
    constexpr From lowest = From(std::numeric_limits<To>::lowest());
    if (x >= above) return std::numeric_limits<To>::max();
    if (x <= lowest) return std::numeric_limits<To>::lowest();
    return x == x ? static_cast<To>(x) : To(0);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
const char* cast_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  const From* x = static_cast<const From*>(inputs[0]);
  To* y = static_cast<To*>(output);
  DFLOW_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) y[i] = converted<To>(x[i]);
  return nullptr;
}

}  // namespace detail

}  // namespace cpu

template <class From, class To>
struct Kernel<Cast, Cpu, From, To> {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) {
    return cpu::make_elementwise_kernel(init, {.dense = &cpu::detail::cast_loop<From, To>,
                                               .input_bytes = sizeof(From),
                                               .output_bytes = sizeof(To),
                                               .ns_per_element = 0.5f});
  }
};

}  // namespace dflow
