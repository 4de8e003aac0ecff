#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>

namespace dflow::cpu {

template <class T>
void vexp(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).exp(n, x, y);
}

template <class T>
void vexpm1(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).expm1(n, x, y);
}

template <class T>
void vlog(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).log(n, x, y);
}

template <class T>
void vlog1p(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).log1p(n, x, y);
}

template <class T>
void vtanh(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).tanh(n, x, y);
}

template <class T>
void vsigmoid(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).sigmoid(n, x, y);
}

template <class T>
void vsin(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).sin(n, x, y);
}

template <class T>
void vcos(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).cos(n, x, y);
}

template <class T>
void verf(std::int64_t n, const T* x, T* y, CpuLevel max_level) {
  loops<MathLoops<T>>(max_level).erf(n, x, y);
}

}  // namespace dflow::cpu
