#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/math/vector_math.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_VECTOR_MATH(T)                           \
  template void vexp<T>(std::int64_t, const T*, T*, CpuLevel);     \
  template void vexpm1<T>(std::int64_t, const T*, T*, CpuLevel);   \
  template void vlog<T>(std::int64_t, const T*, T*, CpuLevel);     \
  template void vlog1p<T>(std::int64_t, const T*, T*, CpuLevel);   \
  template void vtanh<T>(std::int64_t, const T*, T*, CpuLevel);    \
  template void vsigmoid<T>(std::int64_t, const T*, T*, CpuLevel); \
  template void vsin<T>(std::int64_t, const T*, T*, CpuLevel);     \
  template void vcos<T>(std::int64_t, const T*, T*, CpuLevel);     \
  template void verf<T>(std::int64_t, const T*, T*, CpuLevel);

DFLOW_INSTANTIATE_VECTOR_MATH(float)
DFLOW_INSTANTIATE_VECTOR_MATH(double)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_VECTOR_MATH
