#pragma once

#include <dflow/base/config.hpp>

#include <string_view>

namespace dflow {

/// The x86-64 micro-architecture levels kernels are compiled for; an ordered scale.
enum class CpuLevel : int {
  /// SSE2, or not x86.
  baseline = 0,
  /// AVX2, FMA, BMI (Haswell and later, Zen).
  x86_64_v3 = 3,
  /// AVX-512 F, BW, CD, DQ, VL (Skylake-SP and later, Zen 4).
  x86_64_v4 = 4,
};

/// The highest level that the processor has and the operating system saves registers for.
CpuLevel detect_cpu_level() noexcept;

/// "baseline", "x86-64-v3", "x86-64-v4".
std::string_view cpu_level_name(CpuLevel level) noexcept;

}  // namespace dflow
