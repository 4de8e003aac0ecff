#pragma once

#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/default_devices.hpp>

namespace dflow {

std::vector<std::shared_ptr<Device>> make_default_devices(const DefaultDeviceOptions& options) {
  return cpu_devices(options.count, {.name = options.task + "/device:CPU:0",
                                     .incarnation = options.incarnation,
                                     .pool = options.pool,
                                     .allocator = options.allocator,
                                     .kernels = {.reproducible = options.reproducible},
                                     .draw_seed = options.draw_seed,
                                     .files = options.files});
}

}  // namespace dflow
