#pragma once

#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/loops/loop_ops.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>

#include <concepts>
#include <cstddef>

/// The loops of the library's elementwise ops. Ops in `LoopOps` have their expression, compiled per CpuLevel. A few
/// functions of float and double have loops of their own. All else (complex numbers, integer division, the gamma
/// functions) has the expression as it stands.

namespace dflow::cpu {

namespace detail {

/// The loops of the highest level that max_level allows.
template <class O, class T>
const ElementwiseLoops& loops_of(CpuLevel max_level) {
  switch (usable_level(max_level)) {
#if defined(DFLOW_CPU_VARIANTS_X86)
    case CpuLevel::x86_64_v4:
      return v4::elementwise_loops<O, T>();
    case CpuLevel::x86_64_v3:
      return v3::elementwise_loops<O, T>();
#endif
    default:
      return baseline::elementwise_loops<O, T>();
  }
}

/// A function of routines/math/vector_math.hpp as a loop.
template <class T, void (*function)(std::int64_t, const T*, T*, CpuLevel)>
const char* math_loop(std::int64_t n, const void* const* inputs, void* y, CpuLevel max_level) {
  function(n, static_cast<const T*>(inputs[0]), static_cast<T*>(y), max_level);
  return nullptr;
}

template <class O, std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of = nullptr;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Exp, T> = &math_loop<T, &vexp<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Log, T> = &math_loop<T, &vlog<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Log1p, T> = &math_loop<T, &vlog1p<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Tanh, T> = &math_loop<T, &vtanh<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Sigmoid, T> = &math_loop<T, &vsigmoid<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Sin, T> = &math_loop<T, &vsin<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Cos, T> = &math_loop<T, &vcos<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Erf, T> = &math_loop<T, &verf<T>>;

}  // namespace detail

template <class O, class T>
  requires detail::has_loops<O, T>
struct ElementwiseCodeOf<O, T> {
  static ElementwiseCode get(CpuLevel max_level) {
    ElementwiseCode code = detail::layout_of<O, T>();
    const ElementwiseLoops& loops = detail::loops_of<O, T>(max_level);
    code.dense = loops.dense;
    code.first_repeated = loops.first_repeated;
    code.second_repeated = loops.second_repeated;
    // A core takes some 40 bytes per nanosecond from its caches.
    code.ns_per_element = 0.025f * static_cast<float>(code.num_inputs * code.input_bytes + code.output_bytes);
    return code;
  }
};

template <class O, std::floating_point T>
  requires contains_v<O, ArrayFunctionOps>
struct ElementwiseCodeOf<O, T> {
  static ElementwiseCode get(CpuLevel) {
    ElementwiseCode code = detail::layout_of<O, T>();
    code.dense = detail::math_loop_of<O, T>;
    code.ns_per_element = 0.6f;
    return code;
  }
};

}  // namespace dflow::cpu
