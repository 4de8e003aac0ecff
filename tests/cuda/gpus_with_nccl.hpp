// Simulated GPUs with a driver that has a library of collectives.
#pragma once

#include "cuda/gpu_that_is_none.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace dflow::testing {

inline std::shared_ptr<FakeDriver> driver_with_nccl(int devices, std::uint64_t seed = 1) {
  return std::make_shared<FakeDriver>(FakeDriverOptions{.devices = devices, .seed = seed, .has_nccl = true});
}

/// The group of the devices of `gpus_and_cpu`.
inline cuda::DeviceGroup& group_of(const std::vector<std::shared_ptr<Device>>& devices) {
  return dynamic_cast<cuda::DeviceGroup&>(*devices.front()->collectives());
}

}  // namespace dflow::testing
