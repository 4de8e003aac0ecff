#pragma once

#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/op/conversion.hpp>
#include <dflow/ops/math/cast.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace dflow {

namespace cpu {

namespace detail {

DFLOW_BEGIN_INDEPENDENT_LOOPS
template <class From, class To>
const char* cast_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  using Stored = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;  // bools are no lanes of a vector
  const Stored* x = static_cast<const Stored*>(inputs[0]);
  To* y = static_cast<To*>(output);
  std::int64_t i = 0;
  if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To> &&
                (std::is_floating_point_v<From> || std::is_floating_point_v<To>)) {
    // GCC vectorises loops of a known length at any level of optimisation.
    constexpr std::int64_t block = 16;
    for (; n - i >= block; i += block) {
      DFLOW_INDEPENDENT_ITERATIONS
      for (std::int64_t j = 0; j < block; ++j) y[i + j] = dflow::detail::converted<To>(x[i + j]);
    }
  }
  DFLOW_INDEPENDENT_ITERATIONS
  for (; i < n; ++i) y[i] = dflow::detail::converted<To>(x[i]);
  return nullptr;
}
DFLOW_END_INDEPENDENT_LOOPS

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
