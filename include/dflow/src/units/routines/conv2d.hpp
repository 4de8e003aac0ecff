#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/conv2d.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_CONV2D(T)                                                                                   \
  template void conv2d<T>(ThreadPool&, const Conv2dShape&, const T*, const T*, T*, const Epilogue<T>&,                \
                          const CpuOptions&);                                                                         \
  template void conv2d_backward_input<T>(ThreadPool&, const Conv2dShape&, const T*, const T*, T*, const CpuOptions&); \
  template void conv2d_backward_filter<T>(ThreadPool&, const Conv2dShape&, const T*, const T*, T*, const CpuOptions&);

DFLOW_INSTANTIATE_CONV2D(float)
DFLOW_INSTANTIATE_CONV2D(double)
DFLOW_INSTANTIATE_CONV2D(Half)
DFLOW_INSTANTIATE_CONV2D(BFloat16)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_CONV2D
