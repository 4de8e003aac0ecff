#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/reduced_shape_kernel.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

/// The pass that reduces the last reduced run.
inline cpu::ReduceShape last_pass(const DimRuns& runs) {
  const std::size_t last = runs.last_reduced();
  cpu::ReduceShape pass;
  for (std::size_t i = 0; i < runs.runs().size(); ++i) {
    (i < last ? pass.outer : i == last ? pass.reduce : pass.inner) *= runs.runs()[i].extent;
  }
  return pass;
}

/// The only pass that is left if the kept dimensions come first.
inline cpu::ReduceShape kept_first_pass(const DimRuns& runs) {
  cpu::ReduceShape pass;
  for (const DimRuns::Run& run : runs.runs()) (run.is_reduced ? pass.reduce : pass.outer) *= run.extent;
  return pass;
}

/// The routine of a reduction, and whether it may be applied to one run of axes after the other. It may not if partial
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
    // Without elements the other extents may have any size.
    if (x.num_elements() == 0) {
      return run(context, {shape.num_elements(), 0, 1}, x.data(), context.allocate_output<T>(0, shape).data());
    }
    DimRuns runs(x.shape(), context.input(1));
    const int passes = runs.num_reduced();
    if (passes == 0) return context.set_output(0, x.reshaped(shape));
    if (passes == 1) return run(context, last_pass(runs), x.data(), context.allocate_output<T>(0, shape).data());
    if constexpr (RawReduction<O>::template chains<T>) {
      AnyTensor partial = x;
      for (int left = passes; left > 1; --left) {
        const cpu::ReduceShape pass = last_pass(runs);
        AnyTensor next = context.allocate_temporary(dtype_of<T>, {checked_mul(pass.outer, pass.inner)});
        run(context, pass, Tensor<T>::of(partial).data(), Tensor<T>::of(next).data());
        partial = std::move(next);
        runs.drop_last();
      }
      run(context, last_pass(runs), Tensor<T>::of(partial).data(), context.allocate_output<T>(0, shape).data());
    } else {
      AnyTensor transposed = context.allocate_temporary(dtype_of<T>, x.shape());
      const auto perm = runs.kept_first();
      cpu::transpose(context.pool(), sizeof(T), x.shape().dims(), {perm.data(), static_cast<std::size_t>(x.rank())},
                     x.data(), transposed.raw_data(), cpu_options(context));
      run(context, kept_first_pass(runs), Tensor<T>::of(transposed).data(),
          context.allocate_output<T>(0, shape).data());
    }
  }

 private:
  static void run(KernelContext& context, const cpu::ReduceShape& pass, const T* x, T* y) {
    RawReduction<O>::run(context.pool(), pass, x, y, cpu_options(context));
  }
};

/// One axis of x as the middle dimension of three.
inline cpu::ReduceShape one_axis(const Shape& x, std::int64_t axis) {
  const int along = non_negative_axis(axis, x.rank());
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
struct Kernel<ReducedShape, Cpu, T> : detail::ReducedShapeKernel<T> {};

}  // namespace dflow
