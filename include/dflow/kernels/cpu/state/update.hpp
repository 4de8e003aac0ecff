#pragma once

#include <dflow/kernels/cpu/routines/state/optimizers.hpp>
#include <dflow/kernels/cpu/state/variable.hpp>
#include <dflow/ops/state/update.hpp>

namespace dflow {

namespace detail {

/// A scalar hyperparameter. Fails if the input is no scalar.
template <class T>
T hyperparameter(const KernelContext& context, int i) {
  require_scalar(context, i);
  return *context.input<T>(i).data();
}

template <class T>
T* writable_elements(VariableUpdate& update, std::size_t i, KernelContext& context) {
  return Tensor<T>::of(update.writable(i, *context.device().allocator)).data();
}

/// The rows of a sparse gradient; rows of equal index are summed.
template <class T, class Index>
struct SummedRows {
  AnyTensor indices, rows;
  std::int64_t count = 0;
  std::int64_t row_size = 0;

  SummedRows(KernelContext& context, const AnyTensor& variable, int grad_input, int indices_input) {
    const Tensor<T>& grad = context.input<T>(grad_input);
    const Tensor<Index>& given = context.input<Index>(indices_input);
    row_size = checked_row_size(context, variable, given, grad);
    const std::int64_t bad = cpu::find_bad_index(given.num_elements(), given.data(), variable.dim(0));
    if (bad >= 0) fail_bad_index(context, bad, given.data()[bad], variable.dim(0));
    indices = context.allocate_temporary(dtype_of<Index>, given.shape());
    rows = context.allocate_temporary(dtype_of<T>, grad.shape());
    count = cpu::sum_duplicate_rows(context.pool(), given.num_elements(), row_size, given.data(), grad.data(),
                                    static_cast<Index*>(indices.raw_data()), static_cast<T*>(rows.raw_data()),
                                    cpu_options(context));
  }
  const Index* index_data() const { return static_cast<const Index*>(indices.raw_data()); }
  const T* row_data() const { return static_cast<const T*>(rows.raw_data()); }
};

template <class T>
cpu::AdamStep<T> adam_step(const KernelContext& context, bool use_nesterov) {
  return {hyperparameter<T>(context, 3),
          hyperparameter<T>(context, 4),
          hyperparameter<T>(context, 5),
          hyperparameter<T>(context, 6),
          hyperparameter<T>(context, 7),
          hyperparameter<T>(context, 8),
          use_nesterov};
}

inline double apply_cost_ns(const KernelInit& init, std::size_t grad, double ns_per_element) {
  return 300 + estimated_elements(init.inputs[grad]) * ns_per_element;
}

}  // namespace detail

template <class T>
struct Kernel<ApplyGradientDescent, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 2, 0.3); }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&detail::variable_input(context, 0, dtype_of<T>)});
    const Tensor<T>& grad = context.input<T>(2);
    detail::require_same_shape(context, update.value(0), grad, "gradient");
    const T lr = detail::hyperparameter<T>(context, 1);
    T* var = detail::writable_elements<T>(update, 0, context);
    cpu::apply_gradient_descent(context.pool(), grad.num_elements(), var, lr, grad.data(), cpu_options(context));
  }
};

template <class T>
struct Kernel<ApplyMomentum, Cpu, T> {
  ApplyMomentum::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 3, 0.5); }

  void operator()(KernelContext& context) const {
    VariableUpdate update(
        {&detail::variable_input(context, 0, dtype_of<T>), &detail::variable_input(context, 1, dtype_of<T>)});
    const Tensor<T>& grad = context.input<T>(3);
    detail::require_same_shape(context, update.value(0), grad, "gradient");
    detail::require_same_shape(context, update.value(0), update.value(1), "accumulator");
    const T lr = detail::hyperparameter<T>(context, 2), momentum = detail::hyperparameter<T>(context, 4);
    T* var = detail::writable_elements<T>(update, 0, context);
    T* accum = detail::writable_elements<T>(update, 1, context);
    cpu::apply_momentum(context.pool(), grad.num_elements(), var, accum, lr, grad.data(), momentum, attrs.use_nesterov,
                        cpu_options(context));
  }
};

template <class T>
struct Kernel<ApplyAdam, Cpu, T> {
  ApplyAdam::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 9, 1.0); }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&detail::variable_input(context, 0, dtype_of<T>),
                           &detail::variable_input(context, 1, dtype_of<T>),
                           &detail::variable_input(context, 2, dtype_of<T>)});
    const Tensor<T>& grad = context.input<T>(9);
    detail::require_same_shape(context, update.value(0), grad, "gradient");
    for (std::size_t i = 1; i < 3; ++i) detail::require_same_shape(context, update.value(0), update.value(i), "moment");
    const cpu::AdamStep<T> step = detail::adam_step<T>(context, attrs.use_nesterov);
    T* var = detail::writable_elements<T>(update, 0, context);
    T* m = detail::writable_elements<T>(update, 1, context);
    T* v = detail::writable_elements<T>(update, 2, context);
    cpu::apply_adam(context.pool(), grad.num_elements(), var, m, v, step, grad.data(), cpu_options(context));
  }
};

template <class T, class Index>
struct Kernel<SparseApplyGradientDescent, Cpu, T, Index> {
  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 2, 2.0); }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&detail::variable_input(context, 0, dtype_of<T>)});
    const detail::SummedRows<T, Index> grad(context, update.value(0), 2, 3);
    const T lr = detail::hyperparameter<T>(context, 1);
    T* var = detail::writable_elements<T>(update, 0, context);
    cpu::sparse_apply_gradient_descent(context.pool(), grad.count, grad.row_size, var, lr, grad.row_data(),
                                       grad.index_data(), cpu_options(context));
  }
};

template <class T, class Index>
struct Kernel<SparseApplyMomentum, Cpu, T, Index> {
  SparseApplyMomentum::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 3, 2.0); }

  void operator()(KernelContext& context) const {
    VariableUpdate update(
        {&detail::variable_input(context, 0, dtype_of<T>), &detail::variable_input(context, 1, dtype_of<T>)});
    detail::require_same_shape(context, update.value(0), update.value(1), "accumulator");
    const detail::SummedRows<T, Index> grad(context, update.value(0), 3, 4);
    const T lr = detail::hyperparameter<T>(context, 2), momentum = detail::hyperparameter<T>(context, 5);
    T* var = detail::writable_elements<T>(update, 0, context);
    T* accum = detail::writable_elements<T>(update, 1, context);
    cpu::sparse_apply_momentum(context.pool(), grad.count, grad.row_size, var, accum, lr, grad.row_data(),
                               grad.index_data(), momentum, attrs.use_nesterov, cpu_options(context));
  }
};

template <class T, class Index>
struct Kernel<SparseApplyAdam, Cpu, T, Index> {
  SparseApplyAdam::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::apply_cost_ns(init, 9, 3.0); }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&detail::variable_input(context, 0, dtype_of<T>),
                           &detail::variable_input(context, 1, dtype_of<T>),
                           &detail::variable_input(context, 2, dtype_of<T>)});
    for (std::size_t i = 1; i < 3; ++i) detail::require_same_shape(context, update.value(0), update.value(i), "moment");
    const detail::SummedRows<T, Index> grad(context, update.value(0), 9, 10);
    const cpu::AdamStep<T> step = detail::adam_step<T>(context, attrs.use_nesterov);
    T* var = detail::writable_elements<T>(update, 0, context);
    T* m = detail::writable_elements<T>(update, 1, context);
    T* v = detail::writable_elements<T>(update, 2, context);
    cpu::sparse_apply_adam(context.pool(), grad.count, grad.row_size, var, m, v, step, grad.row_data(),
                           grad.index_data(), cpu_options(context));
  }
};

}  // namespace dflow
