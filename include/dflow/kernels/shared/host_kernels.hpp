#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/ops/control/check.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace dflow::detail {

// Kernels with all inputs and outputs in host memory, wherever their device computes.

template <class T>
struct ConcatOffsetKernel {
  double cost_ns(const KernelInit&) const { return 200; }

  void operator()(KernelContext& context) const {
    const Shape vector = inferred_shape(context);
    const std::int64_t axis = context.input<T>(0).scalar(), rank = vector[0];
    if (axis < -rank || axis >= rank) context.fail(str_cat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    static_assert(sizeof(T) < sizeof(std::int64_t));
    std::int64_t offset = 0;
    for (int i = 0; i < context.num_outputs(); ++i) {
      if (!std::in_range<T>(offset)) {
        context.fail(str_cat("shape ", i, " begins at ", offset, ", beyond the range of ", dtype_name(dtype_of<T>)));
      }
      Tensor<T>& begin = context.allocate_output<T>(i, vector);
      std::fill(begin.begin(), begin.end(), T());
      begin.span()[along] = static_cast<T>(offset);
      offset += context.input<T>(i + 1).span()[along];
    }
  }
};

template <class T>
struct InvertPermutationKernel {
  static constexpr bool splits = false;

  void operator()(KernelContext& context) const {
    const Tensor<T>& x = context.input<T>(0);
    const Shape shape = inferred_shape(context);
    Tensor<T>& y = context.allocate_output<T>(0, shape);
    std::fill(y.begin(), y.end(), T(-1));
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const T to = x.data()[i];
      if (to < 0 || to >= shape[0]) context.fail(str_cat("x[", i, "] = ", to, " is outside [0, ", shape[0], ")"));
      if (y.data()[to] != T(-1)) context.fail(str_cat("x holds ", to, " more than once"));
      y.data()[to] = static_cast<T>(i);
    }
  }
};

struct AssertKernel {
  Assert::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 20; }

  void operator()(KernelContext& context) const {
    if (context.input(0).rank() != 0) context.fail("the condition must be a scalar");
    if (context.input<bool>(0).scalar()) return;
    std::string message = "assertion failed:";
    for (int i = 1; i < context.num_inputs(); ++i) {
      const AnyTensor& tensor = context.input(i);
      const std::int64_t shown = attrs.summarize < 0 ? tensor.num_elements() : attrs.summarize;
      const bool is_text = tensor.dtype() == DType::string && tensor.rank() == 0;
      message += str_cat(" [", is_text ? tensor.as<std::string>().scalar() : tensor.to_string(shown), "]");
    }
    context.fail(std::move(message));
  }
};

}  // namespace dflow::detail
