#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/state/optimizers.ipp>

namespace dflow::cpu {

#define DFLOW_INSTANTIATE_UPDATES(Rule)                                                                                \
  template void apply_update<Rule>(ThreadPool&, std::int64_t, const UpdateArguments&, const CpuOptions&);              \
  template void apply_update_rows<Rule, std::int32_t>(ThreadPool&, std::int64_t, std::int64_t, const UpdateArguments&, \
                                                      const std::int32_t*, const CpuOptions&);                         \
  template void apply_update_rows<Rule, std::int64_t>(ThreadPool&, std::int64_t, std::int64_t, const UpdateArguments&, \
                                                      const std::int64_t*, const CpuOptions&);

DFLOW_INSTANTIATE_UPDATES(dflow::detail::GradientDescentRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::MomentumRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::AdamRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::AdagradRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::AdadeltaRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::FtrlRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::RmsPropRule)
DFLOW_INSTANTIATE_UPDATES(dflow::detail::CenteredRmsPropRule)

}  // namespace dflow::cpu
#undef DFLOW_INSTANTIATE_UPDATES
