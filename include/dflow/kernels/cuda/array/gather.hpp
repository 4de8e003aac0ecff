#pragma once

#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/select.hpp>

namespace dflow {

namespace cuda {

/// What turns elements of the first type of a Cast into the second.
const KernelFunction& cast_function(const TypeArgs& types);
/// Output 0 is input 0 in another element type.
void cast_elements(KernelContext& context, const KernelFunction& function);
/// Output 0 takes from inputs 1 and 2 as input 0 says, element by element or row by row.
void select_elements(KernelContext& context);
/// Output 0 is the rows of input 0 that input 1, of int32 or int64, names.
void gather_rows(KernelContext& context);

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

template <>
struct Kernel<Select, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const { cuda::select_elements(context); }
  static const Formula* formula(int) { return cuda::select_formula(); }
};

template <>
struct Kernel<Gather, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const { cuda::gather_rows(context); }
};

}  // namespace dflow
