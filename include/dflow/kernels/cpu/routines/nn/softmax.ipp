#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>

#include <atomic>
#include <cstdint>

namespace dflow::cpu {

/// Calls body(row) for each row; a row takes about `element_ns` for each of its elements.
template <class Body>
void for_each_row(ThreadPool& pool, std::int64_t rows, std::int64_t cols, double element_ns, Body&& body) {
  pool.parallel_for(rows, 20 + element_ns * static_cast<double>(cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) body(r);
  });
}

template <class T>
void softmax(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, T* y, const CpuOptions& options) {
  const auto& table = loops<SoftmaxLoops<loop_t<T>>>(options.max_level);
  for_each_row(pool, rows, cols, 1.0,
               [&](std::int64_t r) { table.softmax(cols, as_loop(logits) + r * cols, as_loop(y) + r * cols); });
}

template <class T>
void log_softmax(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, T* y,
                 const CpuOptions& options) {
  const auto& table = loops<SoftmaxLoops<loop_t<T>>>(options.max_level);
  for_each_row(pool, rows, cols, 1.0,
               [&](std::int64_t r) { table.log_softmax(cols, as_loop(logits) + r * cols, as_loop(y) + r * cols); });
}

template <class T>
void softmax_backward(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* y, const T* grad_y, T* grad_x,
                      const CpuOptions& options) {
  const auto& table = loops<SoftmaxLoops<loop_t<T>>>(options.max_level);
  for_each_row(pool, rows, cols, 0.5, [&](std::int64_t r) {
    table.softmax_backward(cols, as_loop(y) + r * cols, as_loop(grad_y) + r * cols, as_loop(grad_x) + r * cols);
  });
}

template <class T>
void log_softmax_backward(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* y, const T* grad_y,
                          T* grad_x, const CpuOptions& options) {
  const auto& table = loops<SoftmaxLoops<loop_t<T>>>(options.max_level);
  for_each_row(pool, rows, cols, 1.0, [&](std::int64_t r) {
    table.log_softmax_backward(cols, as_loop(y) + r * cols, as_loop(grad_y) + r * cols, as_loop(grad_x) + r * cols);
  });
}

template <class T>
void softmax_cross_entropy(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, const T* labels,
                           T* loss, T* backprop, const CpuOptions& options) {
  const auto& table = loops<CrossEntropyLoops<loop_t<T>>>(options.max_level);
  for_each_row(pool, rows, cols, 1.5, [&](std::int64_t r) {
    table.cross_entropy(cols, as_loop(logits) + r * cols, as_loop(labels) + r * cols,
                        loss == nullptr ? nullptr : as_loop(loss) + r,
                        backprop == nullptr ? nullptr : as_loop(backprop) + r * cols);
  });
}

template <class T, class Index>
std::int64_t sparse_softmax_cross_entropy(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits,
                                          const Index* labels, T* loss, T* backprop, const CpuOptions& options) {
  const auto& table = loops<CrossEntropyLoops<loop_t<T>>>(options.max_level);
  std::atomic<bool> all_in_range{true};
  for_each_row(pool, rows, cols, 1.2, [&](std::int64_t r) {
    const auto label = static_cast<std::int64_t>(labels[r]);
    if (label < 0 || label >= cols) all_in_range.store(false, std::memory_order_relaxed);
    table.sparse_cross_entropy(cols, as_loop(logits) + r * cols, label, loss == nullptr ? nullptr : as_loop(loss) + r,
                               backprop == nullptr ? nullptr : as_loop(backprop) + r * cols);
  });
  if (all_in_range.load()) return -1;
  std::int64_t r = 0;
  while (labels[r] >= 0 && static_cast<std::int64_t>(labels[r]) < cols) ++r;
  return r;
}

}  // namespace dflow::cpu
