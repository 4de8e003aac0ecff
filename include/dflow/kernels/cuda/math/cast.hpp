#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/ops/math/cast.hpp>

namespace dflow {

namespace cuda {

/// The kernel function that turns elements of the first type of a Cast into the second.
const KernelFunction& cast_function(const TypeArgs& types);
/// Output 0 is input 0 in another element type.
void cast_elements(KernelContext& context, const KernelFunction& function);

}  // namespace cuda

template <>
struct Kernel<Cast, Cuda> {
 public:
  explicit Kernel(const KernelInit& init) : function_(cuda::cast_function(init.node.types)) {}

  void operator()(KernelContext& context) const { cuda::cast_elements(context, function_); }
  static const Formula* formula(int) { return cuda::cast_formula(); }

 private:
  const cuda::KernelFunction& function_;
};

}  // namespace dflow
