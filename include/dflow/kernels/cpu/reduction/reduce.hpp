#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/inferred_shape.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

/// A tensor's dimensions as runs that are reduced or kept as one; dimensions of 1 belong to none.
class DimRuns {
 public:
  /// axes: int32, already checked by the op's shape function.
  DimRuns(const Shape& x, const AnyTensor& axes) : rank_(x.rank()) {
    for (const std::int64_t axis : SmallIntegers(axes)) mask_ |= 1u << (axis < 0 ? axis + rank_ : axis);
    for (int i = 0; i < rank_; ++i) {
      if (x[i] != 1) append(x[i], (mask_ >> i & 1u) != 0);
    }
  }

  int num_reduced() const {
    return static_cast<int>(
        std::count_if(runs_.begin(), runs_.begin() + size_, [](const Run& run) { return run.is_reduced; }));
  }
  /// The pass that reduces the last reduced run.
  cpu::ReduceShape last_pass() const {
    cpu::ReduceShape pass;
    int i = last_reduced();
    pass.reduce = runs_[static_cast<std::size_t>(i)].extent;
    for (int j = 0; j < i; ++j) pass.outer *= runs_[static_cast<std::size_t>(j)].extent;
    while (++i < size_) pass.inner *= runs_[static_cast<std::size_t>(i)].extent;
    return pass;
  }
  /// What is left after that pass.
  void drop_last() {
    const std::array<Run, max_rank> old = runs_;
    const int dropped = last_reduced(), count = size_;
    size_ = 0;
    for (int i = 0; i < count; ++i) {
      if (i != dropped) append(old[static_cast<std::size_t>(i)].extent, old[static_cast<std::size_t>(i)].is_reduced);
    }
  }

  /// The permutation that puts the kept dimensions first, and the one pass that is left then.
  std::array<std::int32_t, max_rank> kept_first() const {
    std::array<std::int32_t, max_rank> perm{};
    std::size_t to = 0;
    for (const std::uint32_t wanted : {0u, 1u}) {
      for (int i = 0; i < rank_; ++i) {
        if ((mask_ >> i & 1u) == wanted) perm[to++] = i;
      }
    }
    return perm;
  }
  cpu::ReduceShape kept_first_pass() const {
    cpu::ReduceShape pass;
    for (int i = 0; i < size_; ++i) {
      const Run& run = runs_[static_cast<std::size_t>(i)];
      (run.is_reduced ? pass.reduce : pass.outer) *= run.extent;
    }
    return pass;
  }

 private:
  struct Run {
    std::int64_t extent = 1;
    bool is_reduced = false;
  };
  void append(std::int64_t extent, bool is_reduced) {
    if (size_ > 0 && runs_[static_cast<std::size_t>(size_ - 1)].is_reduced == is_reduced) {
      runs_[static_cast<std::size_t>(size_ - 1)].extent *= extent;
    } else {
      runs_[static_cast<std::size_t>(size_++)] = {extent, is_reduced};
    }
  }
  int last_reduced() const {
    int i = size_ - 1;
    while (!runs_[static_cast<std::size_t>(i)].is_reduced) --i;
    return i;
  }

  std::array<Run, max_rank> runs_{};
  int size_ = 0;
  int rank_;
  std::uint32_t mask_ = 0;
};

/// The routine of a reduction, and whether it may be applied to one run of axes after the other: not where partial
/// results would be rounded to 16 bits or to integers.
template <class O>
struct RawReduction;
template <>
struct RawReduction<Sum> {
  template <class T>
  static constexpr bool chains = sizeof(T) != 2 || std::is_integral_v<T>;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_sum(args...); };
};
template <>
struct RawReduction<Mean> {
  template <class T>
  static constexpr bool chains = sizeof(T) != 2 && !std::is_integral_v<T>;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_mean(args...); };
};
template <>
struct RawReduction<Prod> {
  template <class T>
  static constexpr bool chains = sizeof(T) != 2 || std::is_integral_v<T>;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_prod(args...); };
};
template <>
struct RawReduction<Max> {
  template <class T>
  static constexpr bool chains = true;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_max(args...); };
};
template <>
struct RawReduction<Min> {
  template <class T>
  static constexpr bool chains = true;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_min(args...); };
};
template <>
struct RawReduction<All> {
  template <class T>
  static constexpr bool chains = true;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_all(args...); };
};
template <>
struct RawReduction<Any> {
  template <class T>
  static constexpr bool chains = true;
  static constexpr auto run = [](auto&&... args) { cpu::reduce_any(args...); };
};

template <class O, class T>
struct ReduceKernel {
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[0]) * sizeof(T) * 0.06; }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const Tensor<T>& x = context.input<T>(0);
    // Without elements the extents that are left may be as large as they like.
    if (x.num_elements() == 0) {
      return run(context, {shape.num_elements(), 0, 1}, x.data(), context.allocate_output<T>(0, shape).data());
    }
    DimRuns runs(x.shape(), context.input(1));
    const int passes = runs.num_reduced();
    if (passes == 0) return context.set_output(0, x.reshaped(shape));
    if (passes == 1) return run(context, runs.last_pass(), x.data(), context.allocate_output<T>(0, shape).data());
    if constexpr (RawReduction<O>::template chains<T>) {
      AnyTensor partial = x;
      for (int left = passes; left > 1; --left) {
        const cpu::ReduceShape pass = runs.last_pass();
        AnyTensor next = context.allocate_temporary(dtype_of<T>, {checked_mul(pass.outer, pass.inner)});
        run(context, pass, Tensor<T>::of(partial).data(), Tensor<T>::of(next).data());
        partial = std::move(next);
        runs.drop_last();
      }
      run(context, runs.last_pass(), Tensor<T>::of(partial).data(), context.allocate_output<T>(0, shape).data());
    } else {
      AnyTensor transposed = context.allocate_temporary(dtype_of<T>, x.shape());
      const auto perm = runs.kept_first();
      cpu::transpose(context.pool(), sizeof(T), x.shape().dims(), {perm.data(), static_cast<std::size_t>(x.rank())},
                     x.data(), transposed.raw_data(), cpu_options(context));
      run(context, runs.kept_first_pass(), Tensor<T>::of(transposed).data(),
          context.allocate_output<T>(0, shape).data());
    }
  }

 private:
  static void run(KernelContext& context, const cpu::ReduceShape& pass, const T* x, T* y) {
    RawReduction<O>::run(context.pool(), pass, x, y, cpu_options(context));
  }
};

/// One axis of x as the middle one of three.
inline cpu::ReduceShape one_axis(const Shape& x, std::int64_t axis) {
  const int along = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
  return {x.num_elements(0, along), x[along], x.num_elements(along + 1, x.rank())};
}

}  // namespace detail

template <class T>
struct Kernel<Sum, Cpu, T> : detail::ReduceKernel<Sum, T> {};
template <class T>
struct Kernel<Mean, Cpu, T> : detail::ReduceKernel<Mean, T> {};
template <class T>
struct Kernel<Prod, Cpu, T> : detail::ReduceKernel<Prod, T> {};
template <class T>
struct Kernel<Max, Cpu, T> : detail::ReduceKernel<Max, T> {};
template <class T>
struct Kernel<Min, Cpu, T> : detail::ReduceKernel<Min, T> {};
template <class T>
struct Kernel<All, Cpu, T> : detail::ReduceKernel<All, T> {};
template <class T>
struct Kernel<Any, Cpu, T> : detail::ReduceKernel<Any, T> {};

template <class T>
struct Kernel<ArgMax, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[0]) * sizeof(T) * 0.1; }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const Tensor<T>& x = context.input<T>(0);
    std::int64_t* y = context.allocate_output<std::int64_t>(0, shape).data();
    cpu::argmax(context.pool(), detail::one_axis(x.shape(), context.input<std::int32_t>(1).scalar()), x.data(), y,
                cpu_options(context));
  }
};

template <class T>
struct Kernel<ArgMin, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[0]) * sizeof(T) * 0.1; }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const Tensor<T>& x = context.input<T>(0);
    std::int64_t* y = context.allocate_output<std::int64_t>(0, shape).data();
    cpu::argmin(context.pool(), detail::one_axis(x.shape(), context.input<std::int32_t>(1).scalar()), x.data(), y,
                cpu_options(context));
  }
};

template <class T>
struct Kernel<ReducedShape, Cpu, T> {
  double cost_ns(const KernelInit&) const { return 200; }

  void operator()(KernelContext& context) const {
    const Shape vector = detail::inferred_shape(context);
    const Tensor<T>&x = context.input<T>(0), &axes = context.input<T>(1);
    Tensor<T>& y = context.allocate_output<T>(0, vector);
    std::copy(x.begin(), x.end(), y.begin());
    for (const T axis : axes.span()) {
      const std::int64_t rank = vector[0];
      if (axis < -rank || axis >= rank) context.fail(str_cat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
      y.data()[axis < 0 ? axis + rank : axis] = 1;
    }
  }
};

}  // namespace dflow
