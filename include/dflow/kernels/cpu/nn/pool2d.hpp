#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/shared/window_sizes.hpp>
#include <dflow/ops/nn/pool2d.hpp>
#include <dflow/ops/nn/pool_argmax.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

/// One comparison or addition per element of each window.
inline double pool2d_cost_ns(const Pool2DAttrs& attrs, const OutputInfo& out) {
  return 500 +
         estimated_elements(out) * static_cast<double>(attrs.ksize[1]) * static_cast<double>(attrs.ksize[2]) * 0.3;
}

/// The elements of a window that lie in the image, of one channel: places begin + i row + j channels.
struct WindowPart {
  std::int64_t begin, rows, columns, row, channels;
};

/// The place of the first maximum of x in the part, which has elements. A NaN counts as a maximum.
template <class T>
std::int64_t first_maximum(const void* x, const WindowPart& part) {
  const T* const from = static_cast<const T*>(x);
  std::int64_t best = part.begin;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    for (std::int64_t j = 0, at = part.begin + i * part.row; j < part.columns; ++j, at += part.channels) {
      if (from[best] == from[best] && !(from[at] <= from[best])) best = at;
    }
  }
  return best;
}

/// Calls found(i, place, first) for each element i of the output. `place` is the place of the first maximum of x in the
/// window, or -1 for a window without elements. `first` is the place where the window's image begins.
template <class Found>
void for_each_maximum(ThreadPool& pool, const Pool2dShape& s, const AnyTensor& x, const Found& found) {
  const auto first_of = visit_dtype<RealTypes>(
      x.dtype(), []<class T>() -> std::int64_t (*)(const void*, const WindowPart&) { return &first_maximum<T>; });
  const std::int64_t out_rows = s.out_rows(), out_cols = s.out_cols(), row = s.in_cols * s.channels;
  const double cost = static_cast<double>(out_cols * s.channels * s.window_rows * s.window_cols);
  pool.parallel_for(s.batch * out_rows, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t to = r * out_cols * s.channels;
      const std::int64_t image = r / out_rows * s.in_rows * row, top = r % out_rows * s.stride_rows - s.pad_top;
      const std::int64_t first_row = std::max<std::int64_t>(top, 0);
      WindowPart part{0, std::min(top + s.window_rows, s.in_rows) - first_row, 0, row, s.channels};
      for (std::int64_t j = 0; j < out_cols; ++j) {
        const std::int64_t left = j * s.stride_cols - s.pad_left, first_column = std::max<std::int64_t>(left, 0);
        part.columns = std::min(left + s.window_cols, s.in_cols) - first_column;
        part.begin = image + first_row * row + first_column * s.channels;
        const bool is_empty = part.rows <= 0 || part.columns <= 0;
        for (std::int64_t c = 0; c < s.channels; ++c, ++part.begin) {
          found(to++, is_empty ? -1 : first_of(x.raw_data(), part), image);
        }
      }
    }
  });
}

/// to[i] = from[place], or 0 for place -1.
inline void copy_at(std::size_t element_bytes, void* to, std::int64_t i, const void* from, std::int64_t place) {
  const auto copy = [&](auto bytes) {
    std::byte* const target = static_cast<std::byte*>(to) + i * std::int64_t{bytes};
    if (place < 0) return static_cast<void>(std::memset(target, 0, bytes));
    std::memcpy(target, static_cast<const std::byte*>(from) + place * std::int64_t{bytes}, bytes);
  };
  switch (element_bytes) {
    case 1:
      return copy(std::integral_constant<std::size_t, 1>());
    case 2:
      return copy(std::integral_constant<std::size_t, 2>());
    case 4:
      return copy(std::integral_constant<std::size_t, 4>());
    default:
      return copy(std::integral_constant<std::size_t, 8>());
  }
}

}  // namespace detail

template <class T>
struct Kernel<AvgPool, Cpu, T> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::pool2d_cost_ns(attrs, init.node.outputs[0]); }

  void operator()(KernelContext& context, const Tensor<T>& x, Tensor<T>& y) const {
    if (y.num_elements() == 0) return;
    cpu::avg_pool<T>(context.pool(), detail::pool2d_shape(attrs, x.shape()), x.data(), y.data(), cpu_options(context));
  }
};

template <class T>
struct Kernel<AvgPoolGrad, Cpu, T> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::pool2d_cost_ns(attrs, init.inputs[1]); }

  void operator()(KernelContext& context, const Tensor<std::int32_t>&, const Tensor<T>& grad, Tensor<T>& dx) const {
    if (dx.num_elements() == 0) return;
    cpu::avg_pool_backward<T>(context.pool(), detail::pool2d_shape(attrs, dx.shape()), grad.data(), dx.data(),
                              cpu_options(context));
  }
};

template <class T>
struct Kernel<MaxPool, Cpu, T> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::pool2d_cost_ns(attrs, init.node.outputs[0]); }

  void operator()(KernelContext& context, const Tensor<T>& x, Tensor<T>& y) const {
    if (y.num_elements() == 0) return;
    cpu::max_pool<T>(context.pool(), detail::pool2d_shape(attrs, x.shape()), x.data(), y.data(), cpu_options(context));
  }
};

template <class T>
struct Kernel<MaxPoolGrad, Cpu, T> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return 2 * detail::pool2d_cost_ns(attrs, init.inputs[2]); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<T>&, const Tensor<T>& grad,
                  Tensor<T>& dx) const {
    if (dx.num_elements() == 0) return;
    cpu::max_pool_backward<T>(context.pool(), detail::pool2d_shape(attrs, x.shape()), x.data(), grad.data(), dx.data(),
                              cpu_options(context));
  }
};

template <>
struct Kernel<MaxPoolGradGrad, Cpu> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return 3 * detail::pool2d_cost_ns(attrs, init.node.outputs[0]); }

  void operator()(KernelContext& context, const AnyTensor& x, const AnyTensor&, const AnyTensor& values,
                  AnyTensor& y) const {
    if (y.num_elements() == 0) return;
    detail::for_each_maximum(
        context.pool(), detail::pool2d_shape(attrs, x.shape()), x,
        [bytes = size_of(x.dtype()), from = values.raw_data(), to = y.raw_data()](
            std::int64_t i, std::int64_t place, std::int64_t) { detail::copy_at(bytes, to, i, from, place); });
  }
};

template <>
struct Kernel<MaxPoolWithArgmax, Cpu> {
  MaxPoolWithArgmax::Attrs attrs;

  double cost_ns(const KernelInit& init) const {
    return 3 * detail::pool2d_cost_ns(detail::windows_of(attrs), init.node.outputs[0]);
  }

  void operator()(KernelContext& context, const AnyTensor& x, AnyTensor& y, AnyTensor& argmax) const {
    if (y.num_elements() == 0) return;
    const bool is_wide = argmax.dtype() == DType::int64, has_batch = attrs.include_batch_in_index;
    const std::int64_t num_places = has_batch ? x.num_elements() : x.num_elements() / x.dim(0);
    if (!is_wide && !std::in_range<std::int32_t>(num_places)) {
      context.fail(str_cat("indices of shape ", x.shape().to_string(), " do not fit in int32"));
    }
    detail::for_each_maximum(
        context.pool(), detail::pool2d_shape(detail::windows_of(attrs), x.shape()), x,
        [bytes = size_of(x.dtype()), from = x.raw_data(), to = y.raw_data(), index = argmax.raw_data(), is_wide,
         has_batch](std::int64_t i, std::int64_t place, std::int64_t image) {
          detail::copy_at(bytes, to, i, from, place);
          const std::int64_t counted = has_batch ? place : place - image;
          if (is_wide) {
            static_cast<std::int64_t*>(index)[i] = counted;
          } else {
            static_cast<std::int32_t*>(index)[i] = static_cast<std::int32_t>(counted);
          }
        });
  }
};

}  // namespace dflow
