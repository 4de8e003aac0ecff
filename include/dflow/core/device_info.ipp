#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/core/device_name.hpp>

namespace dflow {

MemoryId host_memory_of(const DeviceInfo& device) {
  DeviceName task = DeviceName::parse(device.name);
  task.type.reset();
  task.id.reset();
  return {task.to_string(), {}};
}

MemoryId memory_of(const DeviceInfo& device) {
  MemoryId memory = host_memory_of(device);
  memory.name = device.memory;
  return memory;
}

}  // namespace dflow
