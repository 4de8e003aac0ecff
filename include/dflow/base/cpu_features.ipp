#pragma once

#include <dflow/base/cpu_features.hpp>

namespace dflow {

CpuLevel detect_cpu_level() noexcept {
#if defined(__x86_64__)
  // Before the compiler's run-time reports wide registers, it asks XGETBV whether the system saves them.
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  if (!v3) return CpuLevel::baseline;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? CpuLevel::x86_64_v4 : CpuLevel::x86_64_v3;
#else
  return CpuLevel::baseline;
#endif
}

std::string_view cpu_level_name(CpuLevel level) noexcept {
  if (level == CpuLevel::x86_64_v4) return "x86-64-v4";
  if (level == CpuLevel::x86_64_v3) return "x86-64-v3";
  return "baseline";
}

}  // namespace dflow
