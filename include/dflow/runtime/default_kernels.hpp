#pragma once

#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/cpu/standard_kernels.hpp>

namespace dflow {

/// The kernels that come with a list of ops unasked. They are for the devices that a session makes itself if it was
/// given none (`make_default_devices`): the host's processors.
template <bool with_standard, class... Ops>
KernelTable default_kernels(OpList<with_standard, Ops...>) {
  const KernelRows* parent = nullptr;
  if constexpr (with_standard) parent = &standard_cpu_kernels();
  return kernels_of<Cpu>(OpList<false, Ops...>{}, parent);
}

}  // namespace dflow
