#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow::detail {

/// In host memory, the same for every device.
template <class T>
struct ReducedShapeKernel {
  double cost_ns(const KernelInit&) const { return 200; }

  void operator()(KernelContext& context) const {
    const Shape vector = inferred_shape(context);
    const Tensor<T>&x = context.input<T>(0), &axes = context.input<T>(1);
    Tensor<T>& y = context.allocate_output<T>(0, vector);
    std::copy(x.begin(), x.end(), y.begin());
    for (const T axis : axes.span()) {
      const std::int64_t rank = vector[0];
      if (axis < -rank || axis >= rank) context.fail(str_cat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
      y.data()[axis < 0 ? axis + rank : axis] = 1;
    }
  }
};

}  // namespace dflow::detail
