#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/one_hot.hpp>

#include <cstdint>

namespace dflow {

template <>
struct Kernel<OneHot, Cpu> {
  OneHot::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }

 private:
  // Before its caller: clang 16 otherwise leaves out instances that a generic lambda asks for.
  /// y [outer, depth, inner] from indices [outer, inner].
  template <class I>
  void mark(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const Tensor<I>& indices = context.input<I>(0);
    const AnyTensor &on = context.input(2), &off = context.input(3);
    const int axis = attrs.axis == -1 ? indices.rank() : static_cast<int>(attrs.axis);
    const std::int64_t outer = shape.num_elements(0, axis), depth = shape[axis];
    const std::int64_t inner = shape.num_elements(axis + 1, shape.rank());
    AnyTensor& y = context.allocate_output(0, shape);
    const DType dtype = y.dtype();
    const I* index = indices.data();
    const double row_cost_ns = static_cast<double>(depth * inner) * detail::copy_cost_ns(dtype);
    context.pool().parallel_for(outer, row_cost_ns, [&](std::int64_t begin, std::int64_t end) {
      detail::fill_elements(dtype, (end - begin) * depth * inner, off.raw_data(),
                            detail::element(y, begin * depth * inner));
      for (std::int64_t i = begin * inner; i < end * inner; ++i) {
        const auto position = static_cast<std::int64_t>(index[i]);
        if (position < 0 || position >= depth) continue;
        void* const marked = detail::element(y, (i / inner * depth + position) * inner + i % inner);
        detail::copy_elements(dtype, 1, on.raw_data(), marked);
      }
    });
  }

 public:
  void operator()(KernelContext& context) const {
    using Types = element_t<1, OneHot::TypeParams>;
    visit_dtype<Types>(context.input(0).dtype(), [&]<class I>() { mark<I>(context); });
  }
};

}  // namespace dflow
