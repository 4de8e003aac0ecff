#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/one_hot.hpp>

#include <algorithm>

namespace dflow {

template <class T, class I>
struct Kernel<OneHot, Cpu, T, I> {
  OneHot::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

  /// y [outer, depth, inner] from indices [outer, inner].
  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const Tensor<I>& indices = context.input<I>(0);
    const T on = context.input<T>(2).scalar(), off = context.input<T>(3).scalar();
    const int axis = attrs.axis == -1 ? indices.rank() : static_cast<int>(attrs.axis);
    const std::int64_t outer = shape.num_elements(0, axis), depth = shape[axis];
    const std::int64_t inner = shape.num_elements(axis + 1, shape.rank());
    T* y = context.allocate_output<T>(0, shape).data();
    const I* index = indices.data();
    const double row_cost_ns = static_cast<double>(depth * inner) * detail::copy_cost_ns(dtype_of<T>);
    context.pool().parallel_for(outer, row_cost_ns, [&](std::int64_t begin, std::int64_t end) {
      std::fill(y + begin * depth * inner, y + end * depth * inner, off);
      for (std::int64_t i = begin * inner; i < end * inner; ++i) {
        const auto position = static_cast<std::int64_t>(index[i]);
        if (position >= 0 && position < depth) y[(i / inner * depth + position) * inner + i % inner] = on;
      }
    });
  }
};

}  // namespace dflow
