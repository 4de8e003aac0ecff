#pragma once

#include <dflow/base/cpu_features.hpp>

#include <cstdint>

/// Before a loop with independent iterations and an output that may be an input. Lets the compiler vectorise without a
/// test for overlap, which an exact overlap would fail. Functions with such loops stand between
/// DFLOW_BEGIN_INDEPENDENT_LOOPS and DFLOW_END_INDEPENDENT_LOOPS: else clang warns of each loop that it cannot
/// vectorise, in programs with an op of their own, too.
#if defined(__clang__)
#define DFLOW_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#define DFLOW_BEGIN_INDEPENDENT_LOOPS \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wpass-failed\"")
#define DFLOW_END_INDEPENDENT_LOOPS _Pragma("clang diagnostic pop")
#else
#if defined(__GNUC__)
#define DFLOW_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define DFLOW_INDEPENDENT_ITERATIONS
#endif
#define DFLOW_BEGIN_INDEPENDENT_LOOPS
#define DFLOW_END_INDEPENDENT_LOOPS
#endif

namespace dflow::cpu {

/// y[i] = f(inputs[0][i], inputs[1][i], ...) for i in [0, n). y may be one of the inputs, and overlaps none otherwise.
/// Returns null, or the error of an element; y is unspecified then.
using ElementwiseLoop = const char* (*)(std::int64_t n, const void* const* inputs, void* y, CpuLevel max_level);

/// The loops of one elementwise op for one element type.
///
/// Thread safety: a value type.
struct ElementwiseCode {
  ElementwiseLoop dense = nullptr;
  /// For two inputs of which the first or the second is one element for all i; null where only `dense` exists.
  ElementwiseLoop first_repeated = nullptr;
  ElementwiseLoop second_repeated = nullptr;
  CpuLevel max_level = CpuLevel::x86_64_v4;  ///< the level passed to the loops
  std::uint8_t num_inputs = 1;               ///< 1 to `BroadcastWalk::max_inputs`
  std::uint8_t input_bytes = 0;              ///< of one element; the same for all inputs
  std::uint8_t output_bytes = 0;
  bool copies_as_bytes = true;  ///< inputs may be copied by their bytes
  bool broadcasts = true;       ///< else all inputs must have one shape
  float ns_per_element = 1;     ///< an estimate of one element's time
};

}  // namespace dflow::cpu
