#pragma once

#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/ops/reduction/add_n.hpp>

namespace dflow {

template <class T>
struct Kernel<AddN, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::add_inputs(context, cuda::kernel_function<cuda::AddNBody<cuda::DeviceElement<T>>>());
  }
  static const Formula* formula(int num_inputs) { return cuda::sum_formula(num_inputs); }
};

}  // namespace dflow
