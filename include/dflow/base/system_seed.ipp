#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/system_seed.hpp>

#include <random>

namespace dflow {

std::uint64_t system_seed() {
  std::random_device entropy;
  return entropy() | std::uint64_t{entropy()} << 32;
}

}  // namespace dflow
