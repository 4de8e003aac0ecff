#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// y[i] = f(x[i]) for n elements in the calling thread; y may be x. Within a few units in the last place; infinities,
/// NaNs, zeros and denormal arguments as in <cmath>. T: float, double.
template <class T>
void vexp(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vexpm1(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vlog(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vlog1p(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vtanh(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
/// 1 / (1 + exp(-x))
template <class T>
void vsigmoid(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vsin(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void vcos(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);
template <class T>
void verf(std::int64_t n, const T* x, T* y, CpuLevel max_level = CpuLevel::x86_64_v4);

}  // namespace dflow::cpu
