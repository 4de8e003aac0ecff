#pragma once

#include <dflow/runtime/device.hpp>

#include <cstdint>
#include <limits>
#include <utility>

namespace dflow {

Device::~Device() = default;

DeviceInfo Device::info() const {
  DeviceInfo info;
  info.name = context_.name;
  info.type = context_.type;
  info.incarnation = context_.incarnation;
  // Devices share a memory where they share the object that stands for it.
  if (context_.memory != nullptr) info.memory = str_cat("memory-", reinterpret_cast<std::uintptr_t>(context_.memory));
  if (context_.pool != nullptr) info.attributes.emplace("threads", str_cat(context_.pool->num_threads()));
  if (context_.allocator != nullptr) {
    const std::size_t limit = context_.allocator->stats().limit_bytes;
    if (limit != std::numeric_limits<std::size_t>::max()) info.attributes.emplace("memory_limit_bytes", str_cat(limit));
  }
  return info;
}

void Device::release_cached_memory() {
  if (context_.allocator != nullptr) context_.allocator->trim();
}

void Device::end_step_async(DeviceStep* step, StepDone done) {
  if (step == nullptr) return done(Status());
  step->status_async(std::move(done));
}

}  // namespace dflow
