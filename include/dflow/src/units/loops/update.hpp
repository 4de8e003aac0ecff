#pragma once

/// Inner loops of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/loops/update_loops.hpp>

namespace dflow::cpu::DFLOW_CPU_VARIANT {

#define DFLOW_INSTANTIATE_UPDATE_LOOPS(Rule)          \
  template const UpdateLoop<Rule, float>& table();    \
  template const UpdateLoop<Rule, double>& table();   \
  template const UpdateLoop<Rule, HalfBits>& table(); \
  template const UpdateLoop<Rule, BFloat16Bits>& table();

DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::GradientDescentRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::MomentumRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::AdamRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::AdagradRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::AdadeltaRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::FtrlRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::RmsPropRule)
DFLOW_INSTANTIATE_UPDATE_LOOPS(dflow::detail::CenteredRmsPropRule)

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
#undef DFLOW_INSTANTIATE_UPDATE_LOOPS
