#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>
#include <dflow/ops/math/broadcast.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dflow {

namespace cpu {

/// The shape that input 1 holds. Throws InvalidArgument unless input 1 is a shape and `narrow` broadcasts to `wide`.
/// The given shape is `wide` if `given_is_wide`, else `narrow`.
Shape given_shape(const KernelContext& context, bool given_is_wide);

/// The passes of reduce_sum that take a tensor from shape `wide` to `narrow`, which broadcasts to it: each sums over
/// one run of dimensions. At most max_rank of them.
struct SumPasses {
  int count = 0;
  ReduceShape passes[max_rank];
  SumPasses(const Shape& wide, const Shape& narrow);
};

namespace detail {

template <std::size_t bytes>
const char* copy_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  std::memcpy(output, inputs[0], static_cast<std::size_t>(n) * bytes);
  return nullptr;
}

}  // namespace detail

}  // namespace cpu

template <>
struct Kernel<BroadcastTo, Cpu> {
  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.node.outputs[0]) * 0.3; }

  void operator()(KernelContext& context) const {
    const Shape shape = cpu::given_shape(context, true);
    const AnyTensor& x = context.input(0);
    if (x.num_elements() == shape.num_elements()) return context.set_output(0, x.reshaped(shape));
    AnyTensor& y = context.allocate_output(0, shape);
    const AnyTensor* inputs[] = {&x};
    const auto code = [](auto bytes) {
      return cpu::ElementwiseCode{.dense = &cpu::detail::copy_loop<bytes()>,
                                  .input_bytes = bytes(),
                                  .output_bytes = bytes(),
                                  .ns_per_element = 0.3f};
    };
    cpu::run_elementwise(context.pool(), detail::with_element_bytes(x.dtype(), code), inputs, y);
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
    if constexpr (cpu::is_16_bit_float<T>) {
      // Rounded once, not after each pass.
      if (sum.count > 1) {
        const cpu::Widened<T> wide(context.pool(), cpu_options(context), x.num_elements(), x.data());
        const cpu::Widened<T> sums(context.pool(), cpu_options(context), y.num_elements(), nullptr);
        run_passes<float>(context, sum, wide.get(), sums.get());
        return sums.narrow_to(y.data());
      }
    }
    run_passes<T>(context, sum, x.data(), y.data());
  }

 private:
  template <class C>
  static void run_passes(KernelContext& context, const cpu::SumPasses& sum, const C* from, C* result) {
    AnyTensor held;
    for (int i = 0; i < sum.count; ++i) {
      const cpu::ReduceShape& pass = sum.passes[i];
      AnyTensor partial;
      if (i + 1 < sum.count) partial = context.allocate_temporary(dtype_of<C>, {pass.outer * pass.inner});
      C* const to = i + 1 < sum.count ? static_cast<C*>(partial.raw_data()) : result;
      cpu::reduce_sum<C>(context.pool(), pass, from, to, cpu_options(context));
      held = std::move(partial);
      from = to;
    }
  }
};

}  // namespace dflow
