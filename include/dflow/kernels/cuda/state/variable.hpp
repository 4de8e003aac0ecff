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

template <class T>
struct Kernel<AssignAdd, Cuda, T> {
  using Element = cuda::DeviceElement<T>;
  static constexpr JointKernel joint =
      cuda::joint_update<AssignAdd, cuda::assign_update_call, cuda::detail::AssignUpdate<Add, Element>, Element>();

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, cuda::assign_update_call,
                           cuda::kernel_function<cuda::AssignUpdateBody<Add, Element>>());
  }
};
template <class T>
struct Kernel<AssignSub, Cuda, T> {
  using Element = cuda::DeviceElement<T>;
  static constexpr JointKernel joint =
      cuda::joint_update<AssignSub, cuda::assign_update_call, cuda::detail::AssignUpdate<Sub, Element>, Element>();

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, cuda::assign_update_call,
                           cuda::kernel_function<cuda::AssignUpdateBody<Sub, Element>>());
  }
};

template <class T>
struct Kernel<ApplyGradientDescent, Cuda, T> {
  static constexpr JointKernel joint = cuda::joint_update<ApplyGradientDescent, cuda::gradient_descent_call,
                                                          cuda::detail::GradientDescentUpdate<T>, T>();

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, cuda::gradient_descent_call,
                           cuda::kernel_function<cuda::GradientDescentBody<T>>());
  }
};
template <class T>
struct Kernel<ApplyMomentum, Cuda, T> {
  static constexpr JointKernel joint =
      cuda::joint_update<ApplyMomentum, cuda::momentum_call, cuda::detail::MomentumUpdate<T>, T>();
  ApplyMomentum::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, cuda::with_nesterov(cuda::momentum_call, attrs.use_nesterov),
                           cuda::kernel_function<cuda::MomentumBody<T>>());
  }
};
template <class T>
struct Kernel<ApplyAdam, Cuda, T> {
  static constexpr JointKernel joint = cuda::joint_update<ApplyAdam, cuda::adam_call, cuda::detail::AdamUpdate<T>, T>();
  ApplyAdam::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, cuda::with_nesterov(cuda::adam_call, attrs.use_nesterov),
                           cuda::kernel_function<cuda::AdamBody<T>>());
  }
};

}  // namespace dflow
