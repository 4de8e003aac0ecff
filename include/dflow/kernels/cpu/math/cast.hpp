#pragma once

#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/op/conversion.hpp>
#include <dflow/ops/math/cast.hpp>

#include <memory>

namespace dflow {

namespace cpu {

namespace detail {

DFLOW_BEGIN_INDEPENDENT_LOOPS
template <class From, class To>
const char* cast_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  const From* x = static_cast<const From*>(inputs[0]);
  To* y = static_cast<To*>(output);
  DFLOW_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) y[i] = dflow::detail::converted<To>(x[i]);
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
