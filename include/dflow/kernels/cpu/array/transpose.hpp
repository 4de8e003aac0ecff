#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/array/transpose.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

struct TransposeKernel : SplitsUnlessStrings {
  double cost_ns(const KernelInit& init) const { return 2 * move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    const SmallIntegers perm(context.input(1));
    if (keeps_order(perm, x.shape())) return context.set_output(0, x.reshaped(shape));
    AnyTensor& y = context.allocate_output(0, shape);
    if (shape.num_elements() == 0) return;
    if (x.dtype() == DType::string) {
      const auto strides = row_major_strides(x.shape());
      std::array<std::int64_t, max_rank> from{};
      for (int i = 0; i < perm.size(); ++i)
        from[static_cast<std::size_t>(i)] = strides[static_cast<std::size_t>(perm[i])];
      return strided_copy(context, x.dtype(), shape.dims(), x.raw_data(), from, y.raw_data(), row_major_strides(shape));
    }
    std::array<std::int32_t, max_rank> order{};
    std::copy(perm.begin(), perm.end(), order.begin());
    cpu::transpose(context.pool(), size_of(x.dtype()), x.shape().dims(),
                   {order.data(), static_cast<std::size_t>(perm.size())}, x.raw_data(), y.raw_data(),
                   cpu_options(context));
  }

 private:
  /// Only dimensions of 1 move.
  static bool keeps_order(const SmallIntegers& perm, const Shape& x) {
    std::int64_t last = -1;
    for (const std::int64_t axis : perm) {
      if (x[static_cast<int>(axis)] == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    return true;
  }
};

}  // namespace detail

template <>
struct Kernel<Transpose, Cpu> : detail::TransposeKernel {};

template <class T>
struct Kernel<InvertPermutation, Cpu, T> : detail::InvertPermutationKernel<T> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }
};

}  // namespace dflow
