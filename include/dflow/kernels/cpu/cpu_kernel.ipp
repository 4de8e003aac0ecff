#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>

namespace dflow {

Status Cpu::check(const DeviceContext& device) {
  if (dynamic_cast<const CpuState*>(device.state) != nullptr) return {};
  return Status::invalid_argument(str_cat("device '", device.name,
                                          "' is of type CPU and keeps no CpuState for its kernels: use a "
                                          "CpuDevice, or a type of its own"));
}

}  // namespace dflow
