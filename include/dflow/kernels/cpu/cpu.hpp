#pragma once

#include <dflow/base/status.hpp>

#include <string_view>

namespace dflow {

struct DeviceContext;

/// The host's processors, as a type of device: `Kernel<Op, Cpu, T>`.
struct Cpu {
  static constexpr std::string_view type = "CPU";
  static constexpr bool in_library = true;

  /// InvalidArgument if the device keeps no `CpuState`, which the library's kernels look at.
  static Status check(const DeviceContext& device);
};

}  // namespace dflow
