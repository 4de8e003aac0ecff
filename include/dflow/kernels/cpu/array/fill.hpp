#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/fill.hpp>

#include <type_traits>

namespace dflow {

template <>
struct Kernel<Fill, Cpu> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& value = context.input(1);
    AnyTensor& y = context.allocate_output(0, shape);
    const DType dtype = y.dtype();
    context.pool().parallel_for(
        shape.num_elements(), detail::copy_cost_ns(dtype), [&](std::int64_t begin, std::int64_t end) {
          detail::fill_elements(dtype, end - begin, value.raw_data(), detail::element(y, begin));
        });
  }
};

template <class T>
struct Kernel<Range, Cpu, T> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  /// Element i is start + i * delta, rounded once; integers wrap, which none inside the range does.
  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const T start = context.input<T>(0).scalar(), delta = context.input<T>(2).scalar();
    T* y = context.allocate_output<T>(0, shape).data();
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        y[i] = static_cast<T>(static_cast<std::uint64_t>(start) +
                              static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta));
      } else {
        y[i] = static_cast<T>(static_cast<double>(start) + static_cast<double>(i) * static_cast<double>(delta));
      }
    }
  }
};

}  // namespace dflow
