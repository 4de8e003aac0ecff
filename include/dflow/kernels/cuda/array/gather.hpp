#pragma once

#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/array/gather.hpp>

namespace dflow {

namespace cuda {

/// Output 0 is the rows of input 0 that input 1, of int32 or int64, names.
void gather_rows(KernelContext& context);

}  // namespace cuda

template <>
struct Kernel<Gather, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const { cuda::gather_rows(context); }
};

}  // namespace dflow
