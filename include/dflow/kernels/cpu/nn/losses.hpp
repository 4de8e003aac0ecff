#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>
#include <dflow/ops/nn/losses.hpp>

#include <algorithm>

namespace dflow {

namespace detail {

inline double cross_entropy_cost_ns(const KernelInit& init) { return 300 + 2 * estimated_elements(init.inputs[0]); }

}  // namespace detail

template <class T>
struct Kernel<SoftmaxCrossEntropyWithLogits, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::cross_entropy_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Tensor<T>& logits = context.input<T>(0);
    const Tensor<T>& labels = context.input<T>(1);
    if (logits.rank() < 1 || logits.shape() != labels.shape()) detail::refuse_shapes(context);
    const Shape shape = logits.shape(), rows = shape.subshape(0, shape.rank() - 1);
    const std::int64_t classes = shape[shape.rank() - 1];
    const T* from = logits.data();
    Tensor<T>& loss = context.allocate_output<T>(0, rows);
    Tensor<T>& backprop = context.forward_or_allocate<T>(0, 1, shape);
    if (classes == 0) std::fill(loss.begin(), loss.end(), T(0.0f));
    if (shape.num_elements() == 0) return;
    cpu::softmax_cross_entropy<T>(context.pool(), rows.num_elements(), classes, from, labels.data(), loss.data(),
                                  backprop.data(), cpu_options(context));
  }
};

template <class T, class Index>
struct Kernel<SparseSoftmaxCrossEntropyWithLogits, Cpu, T, Index> {
  double cost_ns(const KernelInit& init) const { return detail::cross_entropy_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Tensor<T>& logits = context.input<T>(0);
    const Tensor<Index>& labels = context.input<Index>(1);
    if (logits.rank() < 1 || logits.shape().subshape(0, logits.rank() - 1) != labels.shape()) {
      detail::refuse_shapes(context);
    }
    const Shape shape = logits.shape();
    const std::int64_t rows = labels.num_elements(), classes = shape[shape.rank() - 1];
    const T* from = logits.data();
    Tensor<T>& loss = context.allocate_output<T>(0, labels.shape());
    Tensor<T>& backprop = context.forward_or_allocate<T>(0, 1, shape);
    if (rows == 0) return;
    const std::int64_t bad =
        classes == 0 ? 0
                     : cpu::sparse_softmax_cross_entropy<T, Index>(context.pool(), rows, classes, from, labels.data(),
                                                                   loss.data(), backprop.data(), cpu_options(context));
    if (bad >= 0) {
      context.fail(str_cat("labels[", bad, "] = ", static_cast<std::int64_t>(labels.data()[bad]), " is outside [0, ",
                           classes, ")"));
    }
  }
};

template <class T>
struct Kernel<L2Loss, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 200 + 0.2 * estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const {
    const Tensor<T>& x = context.input<T>(0);
    const T sum = x.num_elements() == 0
                      ? T(0.0f)
                      : cpu::sum_of_squares<T>(context.pool(), x.num_elements(), x.data(), cpu_options(context));
    *context.allocate_output<T>(0, {}).data() = static_cast<T>(sum * T(0.5f));
  }
};

}  // namespace dflow
