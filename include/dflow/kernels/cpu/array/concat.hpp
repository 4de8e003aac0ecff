#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/array/concat.hpp>

#include <algorithm>
#include <utility>

namespace dflow {

namespace detail {

/// Inputs [first, last) side by side: row o of the output is row o of each input in turn. A row is all dimensions
/// after the first `axis` dimensions.
inline void join_rows(KernelContext& context, int first, std::int64_t outer, const Shape& shape) {
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const DType dtype = y.dtype();
  const std::int64_t width = shape.num_elements() / outer;
  if (outer == 1) {
    std::int64_t at = 0;
    for (int i = first; i < context.num_inputs(); ++i) {
      const AnyTensor& x = context.input(i);
      context.pool().parallel_for(x.num_elements(), copy_cost_ns(dtype), [&](std::int64_t begin, std::int64_t end) {
        copy_elements(dtype, end - begin, element(x, begin), element(y, at + begin));
      });
      at += x.num_elements();
    }
    return;
  }
  const double row_cost_ns = static_cast<double>(width) * copy_cost_ns(dtype) + 10.0 * context.num_inputs();
  context.pool().parallel_for(outer, row_cost_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      std::int64_t at = o * width;
      for (int i = first; i < context.num_inputs(); ++i) {
        const AnyTensor& x = context.input(i);
        const std::int64_t part = x.num_elements() / outer;
        copy_elements(dtype, part, element(x, o * part), element(y, at));
        at += part;
      }
    }
  });
}

/// x cut into as many equal parts as there are outputs, each of shape `shape`.
inline void cut_rows(KernelContext& context, const AnyTensor& x, std::int64_t outer, const Shape& shape) {
  const int count = context.num_outputs();
  const DType dtype = x.dtype();
  const std::int64_t width = shape.num_elements() == 0 ? 0 : shape.num_elements() / outer;
  if (outer == 1) {
    for (int i = 0; i < count; ++i) set_contiguous_part(context, i, x, i * width, shape);
    return;
  }
  for (int i = 0; i < count; ++i) {
    AnyTensor& y = context.allocate_output(i, shape);
    context.pool().parallel_for(width == 0 ? 0 : outer, static_cast<double>(width) * copy_cost_ns(dtype) + 10,
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t o = begin; o < end; ++o) {
                                    copy_elements(dtype, width, element(x, (o * count + i) * width),
                                                  element(y, o * width));
                                  }
                                });
  }
}

struct ConcatKernel {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    if (context.num_inputs() == 2) return context.set_output(0, context.input(1));
    const int axis = non_negative_axis(context.input<std::int32_t>(0).scalar(), shape.rank());
    join_rows(context, 1, shape.num_elements(0, axis), shape);
  }
};

struct PackKernel {
  Pack::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    if (context.num_inputs() == 1) return context.set_output(0, context.input(0).reshaped(shape));
    join_rows(context, 0, shape.num_elements(0, non_negative_axis(attrs.axis, shape.rank())), shape);
  }
};

struct SplitKernel {
  double cost_ns(const KernelInit& init) const {
    return move_cost_ns(init) * static_cast<double>(init.node.outputs.size());
  }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(1);
    if (context.num_outputs() == 1) return context.set_output(0, x);
    const int axis = non_negative_axis(context.input<std::int32_t>(0).scalar(), x.rank());
    cut_rows(context, x, shape.num_elements(0, axis), shape);
  }
};

struct UnpackKernel {
  Unpack::Attrs attrs;
  double cost_ns(const KernelInit& init) const {
    return init.node.outputs.empty() ? 100 : move_cost_ns(init) * static_cast<double>(init.node.outputs.size());
  }
  void operator()(KernelContext& context) const {
    if (context.num_outputs() == 0) return;
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    cut_rows(context, x, shape.num_elements(0, non_negative_axis(attrs.axis, x.rank())), shape);
  }
};

}  // namespace detail

template <>
struct Kernel<Concat, Cpu> : detail::ConcatKernel {};
template <>
struct Kernel<Pack, Cpu> : detail::PackKernel {};
template <>
struct Kernel<Split, Cpu> : detail::SplitKernel {};
template <>
struct Kernel<Unpack, Cpu> : detail::UnpackKernel {};

template <class T>
struct Kernel<ConcatOffset, Cpu, T> : detail::ConcatOffsetKernel<T> {};

}  // namespace dflow
