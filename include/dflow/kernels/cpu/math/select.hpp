#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/ops/math/select.hpp>

#include <algorithm>

namespace dflow {

template <class T>
struct Kernel<Select, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 50 + estimated_elements(init.node.outputs[0]) * 0.5; }

  void operator()(KernelContext& context) const {
    const Tensor<bool>& condition = context.input<bool>(0);
    const Tensor<T>&t = context.input<T>(1), &e = context.input<T>(2);
    if (!(t.shape() == e.shape())) reject(context, "branches of shapes ", t.shape(), e.shape());
    if (condition.rank() == 0) return context.set_output(0, condition.scalar() ? t : e);
    const Shape shape = t.shape();
    const bool by_rows = !(condition.shape() == shape);
    if (by_rows && (condition.rank() != 1 || shape.rank() == 0 || condition.dim(0) != shape.dim(0))) {
      reject(context, "condition and branches of shapes ", condition.shape(), shape);
    }
    AnyTensor& slot = context.forward_or_allocate(context.owns_input(1) ? 1 : 2, 0, shape);
    if (slot.num_elements() == 0) return;
    T* y = Tensor<T>::of(slot).data();
    const std::int64_t row = shape.num_elements() / condition.num_elements();
    context.pool().parallel_for(
        condition.num_elements(), 0.5 * static_cast<double>(row), [&](std::int64_t begin, std::int64_t end) {
          if (by_rows) {
            select_rows(begin, end, row, condition.data(), t.data(), e.data(), y);
          } else {
            select_elements(end - begin, condition.data() + begin, t.data() + begin, e.data() + begin, y + begin);
          }
        });
  }

 private:
  static void select_elements(std::int64_t n, const bool* condition, const T* t, const T* e, T* y) {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = condition[i] ? t[i] : e[i];
  }
  static void select_rows(std::int64_t begin, std::int64_t end, std::int64_t row, const bool* condition, const T* t,
                          const T* e, T* y) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* from = (condition[i] ? t : e) + i * row;
      if (from != y + i * row) std::copy_n(from, row, y + i * row);
    }
  }
  [[noreturn]] static void reject(const KernelContext& context, const char* what, const Shape& a, const Shape& b) {
    context.fail(str_cat(what, a.to_string(), " and ", b.to_string(), " do not go together"));
  }
};

}  // namespace dflow
