#pragma once

#include <dflow/kernels/cuda/array/kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/state/bodies.hpp>
#include <dflow/kernels/state/variables/variable_kernel.hpp>
#include <dflow/kernels/typed_kernel.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

#include <cstdint>
#include <initializer_list>

namespace dflow {

namespace cuda {

/// A tensor of the same value in a block of its own, which the compute stream fills. Throws what the driver says.
AnyTensor copy_of(const KernelContext& context, const AnyTensor& x);

/// An update of the variables behind the first inputs, which have the shape of input `gradient`.
struct VariableUpdateCall {
  int num_variables = 1;
  int gradient = 1;
  std::initializer_list<int> factors = {};  ///< inputs that are scalars
  bool use_nesterov = false;
};
/// Issues it: steps that read a variable before have the value before. Throws InvalidArgument for other shapes, what
/// `VariableUpdate` throws, and what the driver says.
void update_variables(const KernelContext& context, DType dtype, const VariableUpdateCall& call,
                      const KernelFunction& function);

}  // namespace cuda

template <class T>
  requires cuda::is_device_type<T>
struct Kernel<VariableOp, Cuda, T> : detail::VariableKernel {
  using VariableKernel::VariableKernel;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<ReadVariable, Cuda, T> : detail::ReadVariableKernel {};

template <>
struct Kernel<IsVariableInitialized, Cuda> : detail::IsVariableInitializedKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

template <class T>
  requires cuda::is_device_type<T>
struct Kernel<Assign, Cuda, T> {
  Assign::Attrs attrs;

  void operator()(KernelContext& context) const {
    detail::assign_variable(context, attrs, [&](const AnyTensor& value) { return cuda::copy_of(context, value); });
  }
};

template <class T>
struct Kernel<AssignAdd, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, {},
                           cuda::kernel_function<cuda::AssignUpdateBody<Add, cuda::DeviceElement<T>>>());
  }
};
template <class T>
struct Kernel<AssignSub, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, {},
                           cuda::kernel_function<cuda::AssignUpdateBody<Sub, cuda::DeviceElement<T>>>());
  }
};

template <class T>
struct Kernel<ApplyGradientDescent, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>, {.gradient = 2, .factors = {1}},
                           cuda::kernel_function<cuda::GradientDescentBody<T>>());
  }
};
template <class T>
struct Kernel<ApplyMomentum, Cuda, T> {
  ApplyMomentum::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::update_variables(context, dtype_of<T>,
                           {.num_variables = 2, .gradient = 3, .factors = {2, 4}, .use_nesterov = attrs.use_nesterov},
                           cuda::kernel_function<cuda::MomentumBody<T>>());
  }
};
template <class T>
struct Kernel<ApplyAdam, Cuda, T> {
  ApplyAdam::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::update_variables(
        context, dtype_of<T>,
        {.num_variables = 3, .gradient = 9, .factors = {3, 4, 5, 6, 7, 8}, .use_nesterov = attrs.use_nesterov},
        cuda::kernel_function<cuda::AdamBody<T>>());
  }
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cuda/state/kernel.ipp>
#endif
