#pragma once

#include <dflow/base/cpu_features.hpp>
#include <dflow/kernels/cpu/loops/tables.hpp>

namespace dflow::cpu {
struct ElementwiseLoops;
}

namespace dflow::cpu::baseline {
template <class Table>
const Table& table();
template <class O, class T>
const ElementwiseLoops& elementwise_loops();
}  // namespace dflow::cpu::baseline
#if defined(DFLOW_CPU_VARIANTS_X86)
namespace dflow::cpu::v3 {
template <class Table>
const Table& table();
template <class O, class T>
const ElementwiseLoops& elementwise_loops();
}  // namespace dflow::cpu::v3
namespace dflow::cpu::v4 {
template <class Table>
const Table& table();
template <class O, class T>
const ElementwiseLoops& elementwise_loops();
}  // namespace dflow::cpu::v4
#endif

namespace dflow::cpu {

/// The highest level that max_level allows, that the processor has and that was compiled.
[[nodiscard]] inline CpuLevel usable_level([[maybe_unused]] CpuLevel max_level) {
#if defined(DFLOW_CPU_VARIANTS_X86)
  static const CpuLevel detected = detect_cpu_level();
  return max_level < detected ? max_level : detected;
#else
  return CpuLevel::baseline;
#endif
}

/// The loops of that level.
template <class Table>
[[nodiscard]] const Table& loops(CpuLevel max_level) {
  switch (usable_level(max_level)) {
#if defined(DFLOW_CPU_VARIANTS_X86)
    case CpuLevel::x86_64_v4:
      return v4::table<Table>();
    case CpuLevel::x86_64_v3:
      return v3::table<Table>();
#endif
    default:
      return baseline::table<Table>();
  }
}

}  // namespace dflow::cpu
