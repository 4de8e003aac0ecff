#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/reduction/add_n.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

namespace dflow {

template <class T>
struct Kernel<AddN, Cpu, T> {
  double cost_ns(const KernelInit& init) const {
    return 300 + estimated_elements(init.node.outputs[0]) * sizeof(T) * 0.1 * static_cast<double>(init.inputs.size());
  }

  /// Blocks that stay in the first-level cache are summed in the order of the inputs, 16-bit floats in float.
  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const int count = context.num_inputs();
    if (count == 1) return context.set_output(0, context.input(0));
    T* y = output(context, shape).data();
    context.pool().parallel_for(shape.num_elements(), sizeof(T) * 0.1 * count,
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t first = begin; first < end; first += block)
                                    add(context, first, std::min(first + block, end), y);
                                });
  }

 private:
  using Wide = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;
  static constexpr std::int64_t block = 1024;

  /// In the place of the first input that nobody else reads; blocks are read before they are written.
  static Tensor<T>& output(KernelContext& context, const Shape& shape) {
    int own = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (context.owns_input(i)) {
        own = i;
        break;
      }
    }
    return context.forward_or_allocate<T>(own, 0, shape);
  }

  static void add(const KernelContext& context, std::int64_t begin, std::int64_t end, T* y) {
    std::array<Wide, block> sums;
    const std::int64_t n = end - begin;
    const T *a = context.input<T>(0).data() + begin, *b = context.input<T>(1).data() + begin;
    for (std::int64_t i = 0; i < n; ++i)
      sums[static_cast<std::size_t>(i)] = sum(static_cast<Wide>(a[i]), static_cast<Wide>(b[i]));
    for (int input = 2; input < context.num_inputs(); ++input) {
      const T* x = context.input<T>(input).data() + begin;
      for (std::int64_t i = 0; i < n; ++i) {
        Wide& to = sums[static_cast<std::size_t>(i)];
        to = sum(to, static_cast<Wide>(x[i]));
      }
    }
    for (std::int64_t i = 0; i < n; ++i) y[begin + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }

  /// Integers wrap.
  static Wide sum(Wide a, Wide b) {
    if constexpr (std::is_integral_v<Wide>) {
      using Unsigned = std::make_unsigned_t<Wide>;
      return static_cast<Wide>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    } else {
      return a + b;
    }
  }
};

}  // namespace dflow
