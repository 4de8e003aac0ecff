#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <utility>

namespace dflow {

CpuDevice::CpuDevice(CpuDeviceOptions options)
    : pool_(options.pool != nullptr ? std::move(options.pool) : std::make_shared<InlinePool>()),
      allocator_(options.allocator != nullptr ? std::move(options.allocator)
                                              : std::make_shared<PoolAllocator>(default_cpu_allocator())),
      kernel_cache_(*allocator_) {
  state_.options = options.kernels;
  state_.options.cache = &kernel_cache_;
  context_.name = std::move(options.name);
  context_.type = Cpu::type;
  context_.incarnation = options.incarnation;
  context_.allocator = allocator_.get();
  context_.host_allocator = allocator_.get();
  context_.pool = pool_.get();
  context_.resources = &resources_;
  if (options.draw_seed != nullptr) context_.draw_seed = std::move(options.draw_seed);
  context_.state = &state_;
  if (options.files != nullptr) set_device_files(context_, std::move(options.files));
}

CpuDevice::~CpuDevice() = default;

void CpuDevice::release_cached_memory() {
  kernel_cache_.clear();
  Device::release_cached_memory();
}

std::vector<std::shared_ptr<Device>> cpu_devices(int count, const CpuDeviceOptions& options) {
  DeviceName name = DeviceName::parse(options.name);
  if (!name.is_full()) throw_error(Status::invalid_argument(str_cat("'", options.name, "' is not a full device name")));
  if (count < 0) throw_error(Status::invalid_argument(str_cat("there cannot be ", count, " devices")));
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    CpuDeviceOptions numbered = options;
    numbered.name = name.to_string();
    devices.push_back(std::make_shared<CpuDevice>(std::move(numbered)));
    ++*name.id;
  }
  return devices;
}

}  // namespace dflow
