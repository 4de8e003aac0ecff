#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/updates.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/state/joint_updates.hpp>
#include <dflow/kernels/cuda/state/update_call.hpp>
#include <dflow/kernels/state/variable_kernel.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// Issues an update: steps that read a variable before have the value before. Throws InvalidArgument for other
/// shapes, the errors of `VariableUpdate`, and the driver's errors.
void update_variables(const KernelContext& context, DType dtype, const VariableUpdateCall& call,
                      const KernelFunction& function);

}  // namespace cuda

template <>
struct Kernel<VariableOp, Cuda> : detail::VariableKernel, cuda::NoStrings {
  using VariableKernel::VariableKernel;
};
template <>
struct Kernel<ReadVariable, Cuda> : detail::ReadVariableKernel, cuda::NoStrings {};

template <>
struct Kernel<TemporaryVariableOp, Cuda> : detail::TemporaryVariableKernel, cuda::NoStrings {
  static constexpr bool repeats = false;  // each step has its own
};
template <>
struct Kernel<DestroyTemporaryVariable, Cuda> : detail::DestroyTemporaryVariableKernel, cuda::NoStrings {
  static constexpr bool repeats = false;
};

template <>
struct Kernel<IsVariableInitialized, Cuda> : detail::IsVariableInitializedKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

template <>
struct Kernel<Assign, Cuda> : cuda::NoStrings {
  Assign::Attrs attrs;

  void operator()(KernelContext& context) const {
    detail::assign_variable(context, attrs, [&](const AnyTensor& value) { return cuda::copy_of(context, value); });
  }
};

namespace cuda::detail {

/// Kernel of an op that updates all elements; `Update` is of T's elements on a GPU.
template <class O, class Update, class T>
struct UpdateKernel {
  using Element = DeviceElement<T>;
  static constexpr JointKernel joint = joint_update<O, Update, Element>();
  typename O::Attrs attrs;

  void operator()(KernelContext& context) const {
    update_variables(context, dtype_of<T>, update_call<O>(attrs), kernel_function<DenseUpdateBody<Update, Element>>());
  }
};
template <class O, class F, class T>
using AssignKernel = UpdateKernel<O, AssignUpdate<F, DeviceElement<T>>, T>;
template <class O, template <class, class> class Rule, class T>
using RuleKernel = UpdateKernel<O, RuleUpdate<Rule, T>, T>;

}  // namespace cuda::detail

template <class T>
struct Kernel<AssignAdd, Cuda, T> : cuda::detail::AssignKernel<AssignAdd, Add, T> {};
template <class T>
struct Kernel<AssignSub, Cuda, T> : cuda::detail::AssignKernel<AssignSub, Sub, T> {};
template <class T>
struct Kernel<ApplyGradientDescent, Cuda, T>
    : cuda::detail::RuleKernel<ApplyGradientDescent, detail::GradientDescentRule, T> {};
template <class T>
struct Kernel<ApplyMomentum, Cuda, T> : cuda::detail::RuleKernel<ApplyMomentum, detail::MomentumRule, T> {};
template <class T>
struct Kernel<ApplyAdam, Cuda, T> : cuda::detail::RuleKernel<ApplyAdam, detail::AdamRule, T> {};
template <class T>
struct Kernel<ApplyRMSProp, Cuda, T> : cuda::detail::RuleKernel<ApplyRMSProp, detail::RmsPropRule, T> {};

}  // namespace dflow
