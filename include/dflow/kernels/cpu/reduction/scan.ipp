#pragma once

#include <dflow/core/sum_type.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/kernels/cpu/reduction/scan.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/binary.hpp>

#include <algorithm>
#include <array>

namespace dflow::cpu {

namespace detail {

/// Tensors [outer, length, inner], of which the middle dimension is gone through.
struct ScanLines {
  std::int64_t outer, length, inner;
  bool exclusive, reverse;
};

struct SumStep {
  template <class C>
  static C next(C state, C a, C) {
    return Add::apply<C>(state, a);
  }
};
struct ProductStep {
  template <class C>
  static C next(C state, C a, C) {
    return Mul::apply<C>(state, a);
  }
};
struct LinearStep {
  template <class C>
  static C next(C state, C a, C b) {
    return a == C(0) ? b : a * state + b;
  }
};

/// Lines side by side that one thread goes through together.
inline constexpr std::int64_t scan_width = 64;

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// `width` lines that begin at a, b and y. An element is read before it is written: y may be a or b.
template <class Step, class T>
void scan_lines(const ScanLines& lines, std::int64_t width, const T* a, const T* b, T* y, float initial) {
  using C = dflow::detail::SumType<T>;
  const std::int64_t step = lines.reverse ? -lines.inner : lines.inner;
  std::int64_t at = lines.reverse ? (lines.length - 1) * lines.inner : 0;
  if (width == 1) {
    C state(initial);
    for (std::int64_t j = 0; j < lines.length; ++j, at += step) {
      const C next = Step::template next<C>(state, static_cast<C>(a[at]), static_cast<C>(b[at]));
      y[at] = static_cast<T>(lines.exclusive ? state : next);
      state = next;
    }
    return;
  }
  std::array<C, scan_width> states;
  states.fill(C(initial));
  C* const state = states.data();
  for (std::int64_t j = 0; j < lines.length; ++j, at += step) {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < width; ++i) {
      const C next = Step::template next<C>(state[i], static_cast<C>(a[at + i]), static_cast<C>(b[at + i]));
      y[at + i] = static_cast<T>(lines.exclusive ? state[i] : next);
      state[i] = next;
    }
  }
}
DFLOW_END_INDEPENDENT_LOOPS

/// b: null where the step has no second element.
template <class Step, class T>
void scan_all(ThreadPool& pool, const ScanLines& lines, const void* a, const void* b, void* y, float initial) {
  const std::int64_t blocks = (lines.inner + scan_width - 1) / scan_width;
  const double width = static_cast<double>(std::min(lines.inner, scan_width));
  pool.parallel_for(
      lines.outer * blocks, static_cast<double>(lines.length) * width, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i % blocks * scan_width;
          const std::int64_t at = i / blocks * lines.length * lines.inner + first;
          const T* const from = static_cast<const T*>(a) + at;
          scan_lines<Step, T>(lines, std::min(scan_width, lines.inner - first), from,
                              b == nullptr ? from : static_cast<const T*>(b) + at, static_cast<T*>(y) + at, initial);
        }
      });
}

}  // namespace detail

void scan(KernelContext& context, ScanRule rule, ScanAttrs attrs, float initial) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const bool is_linear = rule == ScanRule::linear;
  const std::int64_t given = dflow::detail::SmallIntegers(context.input(is_linear ? 2 : 1))[0];
  const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  const void* const a = context.input(0).raw_data();
  const void* const b = is_linear ? context.input(1).raw_data() : nullptr;
  AnyTensor& y = context.forward_or_allocate(0, 0, shape);
  if (shape.num_elements() == 0) return;
  const detail::ScanLines lines{shape.num_elements(0, axis), shape[axis], shape.num_elements(axis + 1, shape.rank()),
                                attrs.exclusive, attrs.reverse};
  const auto run = [&]<class Step, class Types>(Step, Types, float first) {
    visit_dtype<Types>(y.dtype(),
                       [&]<class T>() { detail::scan_all<Step, T>(context.pool(), lines, a, b, y.raw_data(), first); });
  };
  switch (rule) {
    case ScanRule::sum:
      return run(detail::SumStep(), NumberTypes(), 0);
    case ScanRule::product:
      return run(detail::ProductStep(), NumberTypes(), 1);
    case ScanRule::linear:
      return run(detail::LinearStep(), FloatOrComplexTypes(), initial);
  }
}

}  // namespace dflow::cpu
