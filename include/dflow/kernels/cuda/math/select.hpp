#pragma once

#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/math/select.hpp>

namespace dflow {

namespace cuda {

/// Output 0 takes from inputs 1 and 2 as input 0 says, element by element or row by row.
void select_elements(KernelContext& context);

}  // namespace cuda

template <>
struct Kernel<Select, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const { cuda::select_elements(context); }
  static const Formula* formula(int) { return cuda::select_formula(); }
};

}  // namespace dflow
