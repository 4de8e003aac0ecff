#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/kernels/shared/position_text.hpp>
#include <dflow/ops/control/check.hpp>

#include <atomic>
#include <cmath>

namespace dflow {

template <>
struct Kernel<Assert, Cpu> : detail::AssertKernel {};

template <class T>
struct Kernel<CheckNumerics, Cpu, T> {
  CheckNumerics::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 100 + 0.5 * estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const {
    const Tensor<T>& x = context.input<T>(0);
    std::atomic<bool> found = false;
    context.pool().parallel_for(x.num_elements(), 0.5, [&](std::int64_t begin, std::int64_t end) {
      bool is_finite = true;
      for (std::int64_t i = begin; i < end; ++i) is_finite &= x.data()[i] - x.data()[i] == T(0.0f);
      if (!is_finite) found.store(true, std::memory_order_relaxed);
    });
    if (found.load()) report(context, x);
    context.set_output(0, x);
  }

 private:
  [[noreturn]] void report(KernelContext& context, const Tensor<T>& x) const {
    bool has_nan = false, has_inf = false;
    for (const T value : x.span()) {
      has_nan |= std::isnan(static_cast<double>(value));
      has_inf |= std::isinf(static_cast<double>(value));
    }
    context.fail(detail::not_finite_text(attrs.message, has_nan, has_inf));
  }
};

template <>
struct Kernel<EnsureShape, Cpu> : detail::EnsureShapeKernel {};

}  // namespace dflow
