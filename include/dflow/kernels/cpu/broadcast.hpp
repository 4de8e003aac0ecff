#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/cpu/raw/reduce.hpp>
#include <dflow/ops/math/broadcast.hpp>

#include <algorithm>

namespace dflow {

namespace cpu {

/// The shape that input 1 holds. Throws InvalidArgument unless it is one and `narrow` broadcasts to `wide`, of which
/// it is the one or the other.
Shape given_shape(const KernelContext& context, bool given_is_wide);

/// The passes of reduce_sum that take a tensor from shape `wide` to `narrow`, which broadcasts to it: each sums over one
/// run of dimensions. At most max_rank of them.
struct SumPasses {
  int count = 0;
  ReduceShape passes[max_rank];
  SumPasses(const Shape& wide, const Shape& narrow);
};

namespace detail {

template <class T>
const char* copy_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  std::copy_n(static_cast<const T*>(inputs[0]), n, static_cast<T*>(output));
  return nullptr;
}

}  // namespace detail

}  // namespace cpu

template <class T>
struct Kernel<BroadcastTo, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.node.outputs[0]) * 0.3; }

  void operator()(KernelContext& context) const {
    const Shape shape = cpu::given_shape(context, true);
    const AnyTensor& x = context.input(0);
    if (x.num_elements() == shape.num_elements()) return context.set_output(0, x.reshaped(shape));
    AnyTensor& y = context.allocate_output(0, shape);
    const AnyTensor* inputs[] = {&x};
    cpu::run_elementwise(context.pool(),
                         {.dense = &cpu::detail::copy_loop<T>,
                          .input_bytes = sizeof(T),
                          .output_bytes = sizeof(T),
                          .ns_per_element = 0.3f},
                         inputs, y);
  }
};

template <class T>
struct Kernel<SumToShape, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.inputs[0]) * 0.3; }

  void operator()(KernelContext& context) const {
    const Shape shape = cpu::given_shape(context, false);
    const Tensor<T>& x = context.input<T>(0);
    if (x.num_elements() == shape.num_elements()) return context.set_output(0, x.reshaped(shape));
    Tensor<T>& y = context.allocate_output<T>(0, shape);
    if (y.num_elements() == 0) return;
    const cpu::SumPasses sum(x.shape(), shape);
    AnyTensor from = x;
    for (int i = 0; i < sum.count; ++i) {
      const cpu::ReduceShape& pass = sum.passes[i];
      AnyTensor to = i + 1 == sum.count ? AnyTensor(y) : context.allocate_temporary(x.dtype(), {pass.outer * pass.inner});
      cpu::reduce_sum<T>(context.pool(), pass, static_cast<const T*>(std::as_const(from).raw_data()),
                         static_cast<T*>(to.raw_data()), cpu_options(context));
      from = std::move(to);
    }
  }
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/broadcast.ipp>
#endif
