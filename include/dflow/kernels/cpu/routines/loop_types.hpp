#pragma once

#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/loops/tables.hpp>

#include <complex>
#include <type_traits>

namespace dflow::cpu {

/// The type that loops know an element type by: same memory, no member functions. With `wrapping`, integers are
/// unsigned.
template <class T, bool wrapping>
struct LoopType {
  using type = T;
};
template <class T, bool wrapping>
  requires(std::is_integral_v<T> && wrapping)
struct LoopType<T, wrapping> {
  using type = std::make_unsigned_t<T>;
};
template <bool wrapping>
struct LoopType<Half, wrapping> {
  using type = HalfBits;
};
template <bool wrapping>
struct LoopType<BFloat16, wrapping> {
  using type = BFloat16Bits;
};
template <class T, bool wrapping>
struct LoopType<std::complex<T>, wrapping> {
  using type = ComplexParts<T>;
};

template <class T>
using loop_t = typename LoopType<T, false>::type;
template <class T>
using wrapping_loop_t = typename LoopType<T, true>::type;

template <class T>
loop_t<T>* as_loop(T* x) {
  return reinterpret_cast<loop_t<T>*>(x);
}
template <class T>
const loop_t<T>* as_loop(const T* x) {
  return reinterpret_cast<const loop_t<T>*>(x);
}
template <class T>
wrapping_loop_t<T>* as_wrapping_loop(T* x) {
  return reinterpret_cast<wrapping_loop_t<T>*>(x);
}
template <class T>
const wrapping_loop_t<T>* as_wrapping_loop(const T* x) {
  return reinterpret_cast<const wrapping_loop_t<T>*>(x);
}

template <class T>
inline constexpr bool is_16_bit_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

}  // namespace dflow::cpu
