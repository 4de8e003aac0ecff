#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/shared/window_sizes.hpp>
#include <dflow/ops/nn/pool2d.hpp>

#include <algorithm>

namespace dflow {

namespace detail {

/// One comparison or addition per element of each window.
inline double pool2d_cost_ns(const Pool2DAttrs& attrs, const OutputInfo& out) {
  return 500 +
         estimated_elements(out) * static_cast<double>(attrs.ksize[1]) * static_cast<double>(attrs.ksize[2]) * 0.3;
}

/// y[b, i, j, c] = values[b, p, q, c], where (p, q) is the place of the first maximum of x in the window; a NaN counts
/// as one. A window without elements gives 0.
template <class T>
void gather_at_maxima(ThreadPool& pool, const Pool2dShape& s, const T* x, const T* values, T* y) {
  const std::int64_t out_rows = s.out_rows(), out_cols = s.out_cols(), row = s.in_cols * s.channels;
  const auto window = [&](std::int64_t image, std::int64_t i, std::int64_t j, std::int64_t c) {
    const std::int64_t top = i * s.stride_rows - s.pad_top, left = j * s.stride_cols - s.pad_left;
    const std::int64_t bottom = std::min(top + s.window_rows, s.in_rows),
                       right = std::min(left + s.window_cols, s.in_cols);
    std::int64_t best = -1;
    for (std::int64_t p = std::max<std::int64_t>(top, 0); p < bottom; ++p) {
      for (std::int64_t q = std::max<std::int64_t>(left, 0); q < right; ++q) {
        const std::int64_t at = image + p * row + q * s.channels + c;
        if (best < 0 || (x[best] == x[best] && !(x[at] <= x[best]))) best = at;
      }
    }
    return best < 0 ? T(0.0f) : values[best];
  };
  const double cost = static_cast<double>(out_cols * s.channels * s.window_rows * s.window_cols);
  pool.parallel_for(s.batch * out_rows, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* to = y + r * out_cols * s.channels;
      for (std::int64_t j = 0; j < out_cols; ++j) {
        for (std::int64_t c = 0; c < s.channels; ++c)
          *to++ = window(r / out_rows * s.in_rows * row, r % out_rows, j, c);
      }
    }
  });
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

template <class T>
struct Kernel<MaxPoolGradGrad, Cpu, T> {
  Pool2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return 3 * detail::pool2d_cost_ns(attrs, init.node.outputs[0]); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<T>&, const Tensor<T>& values,
                  Tensor<T>& y) const {
    if (y.num_elements() == 0) return;
    detail::gather_at_maxima<T>(context.pool(), detail::pool2d_shape(attrs, x.shape()), x.data(), values.data(),
                                y.data());
  }
};

}  // namespace dflow
