#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Arrays of 16-bit floats to float and back.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
void widen_array(int64_t n, const T* DFLOW_RESTRICT x, float* DFLOW_RESTRICT y) {
  for (int64_t i = 0; i < n; ++i) y[i] = widen(x[i]);
}

template <class T>
void narrow_array(int64_t n, const float* DFLOW_RESTRICT x, T* DFLOW_RESTRICT y) {
  for (int64_t i = 0; i < n; ++i) y[i] = Element<T>::narrow(x[i]);
}

template <class T>
inline constexpr CastLoops<T> cast_table = {widen_array<T>, narrow_array<T>};
template <class T>
struct TableOf<CastLoops<T>> {
  static constexpr const CastLoops<T>& value = cast_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
