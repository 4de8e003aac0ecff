#pragma once

#include <dflow/base/cpu_features.hpp>
#include <dflow/kernels/cpu/raw/variants/tables.hpp>

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/raw/variants/lanes.hpp>
#else
namespace dflow::cpu::baseline {
template <class Table> const Table& table();
}
#if defined(DFLOW_CPU_VARIANTS_X86)
namespace dflow::cpu::v3 {
template <class Table> const Table& table();
}
namespace dflow::cpu::v4 {
template <class Table> const Table& table();
}
#endif
#endif

namespace dflow::cpu {

/// The loops of the highest level that max_level allows, that the processor has and that were compiled.
template <class Table> [[nodiscard]] const Table& loops([[maybe_unused]] CpuLevel max_level) {
#if defined(DFLOW_HEADER_ONLY)
  return DFLOW_CPU_VARIANT::table<Table>();
#elif defined(DFLOW_CPU_VARIANTS_X86)
  static const CpuLevel detected = detect_cpu_level();
  const CpuLevel level = max_level < detected ? max_level : detected;
  if (level >= CpuLevel::x86_64_v4) return v4::table<Table>();
  if (level >= CpuLevel::x86_64_v3) return v3::table<Table>();
  return baseline::table<Table>();
#else
  return baseline::table<Table>();
#endif
}

}  // namespace dflow::cpu
