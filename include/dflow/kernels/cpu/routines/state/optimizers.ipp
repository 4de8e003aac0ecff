#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include <cmath>
#include <cstdint>

namespace dflow::cpu {

/// The type that an update of T is computed in.
template <class T>
using update_t = typename ComputeOf<loop_t<T>>::type;

/// Adam's learning rate with both corrections of the bias.
template <class T>
update_t<T> adam_rate(const AdamStep<T>& step) {
  using C = update_t<T>;
  return static_cast<C>(step.lr) * std::sqrt(C(1) - static_cast<C>(step.beta2_power)) /
         (C(1) - static_cast<C>(step.beta1_power));
}

/// Calls body(first element, elements) in shards of whole cache lines.
template <class Body>
void for_each_part(ThreadPool& pool, std::int64_t n, double element_ns, Body&& body) {
  pool.parallel_for(
      n, element_ns, [&](std::int64_t begin, std::int64_t end) { body(begin, end - begin); }, 64);
}

/// Calls body(first element of the row of the variable, first element of the row of the gradient).
template <class Index, class Body>
void for_each_indexed_row(ThreadPool& pool, std::int64_t count, std::int64_t row_size, const Index* indices,
                          Body&& body) {
  pool.parallel_for(count, 20 + 0.5 * static_cast<double>(row_size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::int64_t>(indices[i]) * row_size, i * row_size);
  });
}

template <class T>
void apply_gradient_descent(ThreadPool& pool, std::int64_t n, T* var, T lr, const T* grad, const CpuOptions& options) {
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  for_each_part(pool, n, 0.3, [&](std::int64_t at, std::int64_t size) {
    table.gradient_descent(size, as_loop(var) + at, static_cast<update_t<T>>(lr), as_loop(grad) + at);
  });
}

template <class T>
void apply_momentum(ThreadPool& pool, std::int64_t n, T* var, T* accum, T lr, const T* grad, T momentum,
                    bool use_nesterov, const CpuOptions& options) {
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  for_each_part(pool, n, 0.5, [&](std::int64_t at, std::int64_t size) {
    table.momentum(size, as_loop(var) + at, as_loop(accum) + at, static_cast<update_t<T>>(lr), as_loop(grad) + at,
                   static_cast<update_t<T>>(momentum), use_nesterov);
  });
}

template <class T>
void apply_adam(ThreadPool& pool, std::int64_t n, T* var, T* m, T* v, const AdamStep<T>& step, const T* grad,
                const CpuOptions& options) {
  using C = update_t<T>;
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  const C rate = adam_rate(step);
  for_each_part(pool, n, 1.0, [&](std::int64_t at, std::int64_t size) {
    table.adam(size, as_loop(var) + at, as_loop(m) + at, as_loop(v) + at, rate, static_cast<C>(step.beta1),
               static_cast<C>(step.beta2), static_cast<C>(step.epsilon), step.use_nesterov, as_loop(grad) + at);
  });
}

template <class T, class Index>
void sparse_apply_gradient_descent(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T lr,
                                   const T* grad, const Index* indices, const CpuOptions& options) {
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  for_each_indexed_row(pool, count, row_size, indices, [&](std::int64_t to, std::int64_t from) {
    table.gradient_descent(row_size, as_loop(var) + to, static_cast<update_t<T>>(lr), as_loop(grad) + from);
  });
}

template <class T, class Index>
void sparse_apply_momentum(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T* accum, T lr,
                           const T* grad, const Index* indices, T momentum, bool use_nesterov,
                           const CpuOptions& options) {
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  for_each_indexed_row(pool, count, row_size, indices, [&](std::int64_t to, std::int64_t from) {
    table.momentum(row_size, as_loop(var) + to, as_loop(accum) + to, static_cast<update_t<T>>(lr), as_loop(grad) + from,
                   static_cast<update_t<T>>(momentum), use_nesterov);
  });
}

template <class T, class Index>
void sparse_apply_adam(ThreadPool& pool, std::int64_t count, std::int64_t row_size, T* var, T* m, T* v,
                       const AdamStep<T>& step, const T* grad, const Index* indices, const CpuOptions& options) {
  using C = update_t<T>;
  const auto& table = loops<UpdateLoops<loop_t<T>>>(options.max_level);
  const C rate = adam_rate(step);
  for_each_indexed_row(pool, count, row_size, indices, [&](std::int64_t to, std::int64_t from) {
    table.adam(row_size, as_loop(var) + to, as_loop(m) + to, as_loop(v) + to, rate, static_cast<C>(step.beta1),
               static_cast<C>(step.beta2), static_cast<C>(step.epsilon), step.use_nesterov, as_loop(grad) + from);
  });
}

}  // namespace dflow::cpu
