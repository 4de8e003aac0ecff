#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>
#include <dflow/ops/nn/softmax.hpp>

namespace dflow {

namespace detail {

/// Runs `body(rows, columns, x, y)` over the rows of input 0, in place if nobody else reads it.
template <class T, class Body>
void map_rows(KernelContext& context, const Body& body) {
  const Tensor<T>& x = context.input<T>(0);
  if (x.rank() < 1) refuse_shapes(context);
  const std::int64_t columns = x.dim(x.rank() - 1);
  const T* from = x.data();
  Tensor<T>& y = context.forward_or_allocate<T>(0, 0, x.shape());
  if (y.num_elements() == 0) return;
  body(y.num_elements() / columns, columns, from, y.data());
}

/// The same for two inputs of one shape; the second input may be overwritten.
template <class T, class Body>
void map_row_gradients(KernelContext& context, const Body& body) {
  const Tensor<T>& y = context.input<T>(0);
  const Tensor<T>& dy = context.input<T>(1);
  if (y.rank() < 1 || y.shape() != dy.shape()) refuse_shapes(context);
  const std::int64_t columns = y.dim(y.rank() - 1);
  const T* from = dy.data();
  Tensor<T>& dx = context.forward_or_allocate<T>(1, 0, dy.shape());
  if (dx.num_elements() == 0) return;
  body(dx.num_elements() / columns, columns, y.data(), from, dx.data());
}

inline double softmax_cost_ns(const KernelInit& init) { return 300 + 1.5 * estimated_elements(init.inputs[0]); }

}  // namespace detail

template <class T>
struct Kernel<Softmax, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::softmax_cost_ns(init); }

  void operator()(KernelContext& context) const {
    detail::map_rows<T>(context, [&](std::int64_t rows, std::int64_t columns, const T* x, T* y) {
      cpu::softmax<T>(context.pool(), rows, columns, x, y, cpu_options(context));
    });
  }
};

template <class T>
struct Kernel<LogSoftmax, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::softmax_cost_ns(init); }

  void operator()(KernelContext& context) const {
    detail::map_rows<T>(context, [&](std::int64_t rows, std::int64_t columns, const T* x, T* y) {
      cpu::log_softmax<T>(context.pool(), rows, columns, x, y, cpu_options(context));
    });
  }
};

template <class T>
struct Kernel<SoftmaxGrad, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::softmax_cost_ns(init); }

  void operator()(KernelContext& context) const {
    detail::map_row_gradients<T>(context, [&](std::int64_t rows, std::int64_t columns, const T* y, const T* dy, T* dx) {
      cpu::softmax_backward<T>(context.pool(), rows, columns, y, dy, dx, cpu_options(context));
    });
  }
};

template <class T>
struct Kernel<LogSoftmaxGrad, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::softmax_cost_ns(init); }

  void operator()(KernelContext& context) const {
    detail::map_row_gradients<T>(context, [&](std::int64_t rows, std::int64_t columns, const T* y, const T* dy, T* dx) {
      cpu::log_softmax_backward<T>(context.pool(), rows, columns, y, dy, dx, cpu_options(context));
    });
  }
};

}  // namespace dflow
