#pragma once

/// Every file of this folder includes this one. The files are compiled once per CpuLevel, each time into the namespace
/// dflow::cpu::DFLOW_CPU_VARIANT, and hold plain loops over pointers only. An inline function from outside that
/// namespace (the standard library's, Eigen's) would be a weak symbol: the linker could keep the copy with the wrong
/// flags for the whole program. tools/check_variants.py checks the objects.

#include <dflow/kernels/cpu/loops/tables.hpp>

#include <cstddef>
#include <cstdint>

#if !defined(DFLOW_CPU_VARIANT)
#define DFLOW_CPU_VARIANT baseline
#endif

#define DFLOW_LANE inline __attribute__((always_inline))
#define DFLOW_RESTRICT __restrict__

/// Before a loop with independent iterations, though an output may be one of the inputs.
#if defined(__clang__)
#define DFLOW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define DFLOW_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace dflow::cpu::DFLOW_CPU_VARIANT {

using std::int32_t;
using std::int64_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class T, int bytes>
struct VecOf {
  typedef T type __attribute__((vector_size(bytes)));
};
/// One register of T.
template <class T>
using Vec = typename VecOf<T, vector_bytes>::type;
template <class T>
inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
DFLOW_LANE Vec<T> load(const T* from) {
  Vec<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
DFLOW_LANE void store(T* to, Vec<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

template <class T>
DFLOW_LANE Vec<T> splat(T x) {
  return x - Vec<T>{};
}

template <class T>
DFLOW_LANE T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
DFLOW_LANE T max_of(T a, T b) {
  return a < b ? b : a;
}

DFLOW_LANE float widen(BFloat16Bits x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16); }
/// Branch-free, so that the compiler makes vector code of its loops. Shifts exponent and mantissa into place and
/// scales by 2^112, which also makes denormals right; infinities and NaNs get the full exponent.
DFLOW_LANE float widen(HalfBits x) {
  const uint32_t sign = (static_cast<uint32_t>(x.bits) & 0x8000u) << 16;
  const uint32_t magnitude = (static_cast<uint32_t>(x.bits) & 0x7fffu) << 13;
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | special | sign);
}
DFLOW_LANE float widen(float x) { return x; }
DFLOW_LANE double widen(double x) { return x; }

/// Each family of loops specialises TableOf; the files of src/kernels/cpu/loops/ instantiate table() per element
/// type.
template <class Table>
struct TableOf;
template <class Table>
const Table& table() {
  return TableOf<Table>::value;
}

/// Rounds to nearest, ties to even; NaNs stay NaNs.
DFLOW_LANE BFloat16Bits narrow_bfloat16(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (u >> 16) | 0x40u;
  return {static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded)};
}
DFLOW_LANE HalfBits narrow_half(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  // Normal results: rebias the exponent and round to even at bit 13; a carry into infinity is the right answer.
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Denormal results: adding 0.5 lets the addition round to a multiple of 2^-24.
  const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
  const uint32_t denormal = __builtin_bit_cast(uint32_t, shifted) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  const uint32_t large = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : 0x7c00u;
  return {static_cast<uint16_t>(sign | (magnitude >= 0x47800000u ? large : finite))};
}

template <class T>
struct Element {
  using compute = T;  ///< the type that loops compute in
  static DFLOW_LANE T narrow(T x) { return x; }
};
template <>
struct Element<HalfBits> {
  using compute = float;
  static DFLOW_LANE HalfBits narrow(float x) { return narrow_half(x); }
};
template <>
struct Element<BFloat16Bits> {
  using compute = float;
  static DFLOW_LANE BFloat16Bits narrow(float x) { return narrow_bfloat16(x); }
};
template <class T>
using compute_t = typename Element<T>::compute;

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
