#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// One pass over the variable, its slots and its gradient. T: float, double, Half, BFloat16 (both computed in float).

/// var -= lr * grad
template <class T>
void apply_gradient_descent(ThreadPool& pool, std::int64_t n, T* var, T lr, const T* grad,
                            const CpuOptions& options = {});

/// accum = momentum * accum + grad; var -= lr * accum, or with Nesterov's var -= lr * (grad + momentum * accum)
/// (Sutskever et al. 2013).
template <class T>
void apply_momentum(ThreadPool& pool, std::int64_t n, T* var, T* accum, T lr, const T* grad, T momentum,
                    bool use_nesterov, const CpuOptions& options = {});

/// Kingma and Ba 2014 (arXiv:1412.6980), in the form of its section 2. lr_t = lr sqrt(1 - beta2_power) / (1 -
/// beta1_power); m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr_t m / (sqrt(v) + epsilon). The
/// powers belong to the current step, beta^t, t from 1.
template <class T>
struct AdamStep {
  T beta1_power, beta2_power, lr, beta1, beta2, epsilon;
  bool use_nesterov = false;  ///< the update uses beta1 m + (1 - beta1) grad in place of m
};
template <class T>
void apply_adam(ThreadPool& pool, std::int64_t n, T* var, T* m, T* v, const AdamStep<T>& step, const T* grad,
                const CpuOptions& options = {});

/// The same on the rows indices[i] of [limit, row_size], grad [count, row_size]; other rows and their slots keep their
/// values. The indices are distinct (sum_duplicate_rows) and in [0, limit) (find_bad_index). Index: int32, int64.
template <class T, class Index>
void sparse_apply_gradient_descent(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T lr,
                                   const T* grad, const Index* indices, const CpuOptions& options = {});
template <class T, class Index>
void sparse_apply_momentum(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T* accum, T lr,
                           const T* grad, const Index* indices, T momentum, bool use_nesterov,
                           const CpuOptions& options = {});
template <class T, class Index>
void sparse_apply_adam(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T* m, T* v,
                       const AdamStep<T>& step, const T* grad, const Index* indices, const CpuOptions& options = {});

}  // namespace dflow::cpu
