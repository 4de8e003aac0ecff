#pragma once

#include <dflow/op/op_table.hpp>
#include <dflow/runtime/device.hpp>

#include <utility>

namespace dflow {

DFLOW_INLINE CpuDevice::CpuDevice(CpuDeviceOptions options) : options_(std::move(options)) {
  if (options_.allocator == nullptr) options_.allocator = std::make_shared<PoolAllocator>(default_cpu_allocator());
  options_.kernels.cache = &kernel_cache_;
  context_.name = options_.name;
  context_.type = Cpu::type;
  context_.allocator = options_.allocator.get();
  context_.pool = options_.pool.get();
  context_.resources = &resources_;
  context_.backend = &options_.kernels;
}

DFLOW_INLINE CpuDevice::~CpuDevice() = default;

}  // namespace dflow
