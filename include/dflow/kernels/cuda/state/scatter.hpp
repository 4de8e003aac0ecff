#pragma once

#include <dflow/kernels/cuda/bodies/rows.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/state/variable.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace dflow {

namespace cuda {

/// variable (input 0)[indices (input 1)[i]] = function(..., updates (input 2)[i]). `non_zero`, where there is one,
/// finds updates that are 0, which is an error.
void scatter_rows(KernelContext& context, DType dtype, const KernelFunction& function,
                  const KernelFunction* non_zero = nullptr);
/// As `update_variables`, of the rows that the gradient is of, by the indices in the input after it.
void update_variable_rows(KernelContext& context, DType dtype, const VariableUpdateCall& call,
                          const KernelFunction& function);

namespace detail {

template <class Op, class O, class T>
struct ScatterKernel {
  void operator()(KernelContext& context) const {
    const KernelFunction* non_zero = nullptr;
    if constexpr (std::is_same_v<O, Div> && std::is_integral_v<T>) non_zero = &kernel_function<NonZeroBody<T>>();
    scatter_rows(context, dtype_of<T>, kernel_function<ScatterBody<O, DeviceElement<T>>>(), non_zero);
  }
};

template <class O, template <class, class> class Rule, class T>
struct RowUpdateKernel {
  typename O::Attrs attrs;

  void operator()(KernelContext& context) const {
    update_variable_rows(context, dtype_of<T>, update_call<O>(attrs),
                         kernel_function<SparseUpdateBody<RuleUpdate<Rule, T>, T>>());
  }
};

}  // namespace detail

}  // namespace cuda

template <>
struct Kernel<ScatterUpdate, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const {
    const DType dtype = context.node().types[0];
    cuda::scatter_rows(context, dtype, cuda::detail::function_of_size<cuda::ScatterUpdateBody>(size_of(dtype)));
  }
};
template <class T>
struct Kernel<ScatterAdd, Cuda, T> : cuda::detail::ScatterKernel<ScatterAdd, Add, T> {};
template <class T>
struct Kernel<ScatterSub, Cuda, T> : cuda::detail::ScatterKernel<ScatterSub, Sub, T> {};
template <class T>
struct Kernel<ScatterMul, Cuda, T> : cuda::detail::ScatterKernel<ScatterMul, Mul, T> {};
template <class T>
struct Kernel<ScatterDiv, Cuda, T> : cuda::detail::ScatterKernel<ScatterDiv, Div, T> {};
template <class T>
struct Kernel<ScatterMin, Cuda, T> : cuda::detail::ScatterKernel<ScatterMin, Minimum, T> {};
template <class T>
struct Kernel<ScatterMax, Cuda, T> : cuda::detail::ScatterKernel<ScatterMax, Maximum, T> {};

template <class T>
struct Kernel<SparseApplyGradientDescent, Cuda, T>
    : cuda::detail::RowUpdateKernel<SparseApplyGradientDescent, detail::GradientDescentRule, T> {};
template <class T>
struct Kernel<SparseApplyMomentum, Cuda, T>
    : cuda::detail::RowUpdateKernel<SparseApplyMomentum, detail::MomentumRule, T> {};
template <class T>
struct Kernel<SparseApplyAdam, Cuda, T> : cuda::detail::RowUpdateKernel<SparseApplyAdam, detail::AdamRule, T> {};
template <class T>
struct Kernel<SparseApplyRMSProp, Cuda, T> : cuda::detail::RowUpdateKernel<SparseApplyRMSProp, detail::RmsPropRule, T> {
};

}  // namespace dflow
