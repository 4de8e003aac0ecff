#pragma once

#include "cuda/gpu_that_is_none.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::testing {

/// True for the same bits; elements with different bits must both be NaN. When an operation of the host has two NaN
/// operands, the compiler chooses which of them it gives on.
inline bool same_elements(const AnyTensor& a, const AnyTensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const std::size_t size = size_of(a.dtype());
  const auto* const left = static_cast<const std::byte*>(a.raw_data());
  const auto* const right = static_cast<const std::byte*>(b.raw_data());
  const auto is_nan = [&](const std::byte* element) {
    switch (a.dtype()) {
      case DType::float32:
        return *reinterpret_cast<const float*>(element) != *reinterpret_cast<const float*>(element);
      case DType::float64:
        return *reinterpret_cast<const double*>(element) != *reinterpret_cast<const double*>(element);
      case DType::float16:
        return *reinterpret_cast<const Half*>(element) != *reinterpret_cast<const Half*>(element);
      case DType::bfloat16:
        return *reinterpret_cast<const BFloat16*>(element) != *reinterpret_cast<const BFloat16*>(element);
      default:
        return false;
    }
  };
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const auto at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(left + at, right + at, size) == 0) continue;
    if (!is_nan(left + at) || !is_nan(right + at)) return false;
  }
  return true;
}

/// The result of a step on a GPU with chains. It is equal to the result there without chains, or the same error but
/// for the names in its text. Also the number of launches of each kernel with chains.
struct BesideUnchained {
  std::vector<AnyTensor> values;
  Status status;
  std::map<std::string, std::uint64_t> launches, launches_before;
  cuda::ChainCounts chains;
};

inline BesideUnchained run_beside(const Graph& graph, const std::vector<Feed>& feeds,
                                  const std::vector<AnyOutput>& fetches, PassOptions passes = {},
                                  std::uint64_t seed = 1) {
  BesideUnchained beside;
  std::vector<AnyTensor> plain(fetches.size());
  Status plain_status;
  for (const bool chains : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed, .has_nvrtc = true});
    {
      passes.chains = chains;
      auto devices = gpus_and_cpu(driver);
      const auto gpu = std::static_pointer_cast<CudaDevice>(devices.front());
      Session session(graph, {.devices = std::move(devices), .passes = passes, .soft_placement = true});
      std::vector<AnyTensor>& into = chains ? beside.values : plain;
      into.resize(fetches.size());
      try {
        session.run_erased({}, nullptr, feeds, fetches, {}, into);
      } catch (const Error& error) {
        (chains ? beside.status : plain_status) = error.status();
      }
      if (chains) beside.chains = gpu->chains();
    }
    (chains ? beside.launches : beside.launches_before) = driver->launches();
    check_end(*driver);
  }
  CHECK(beside.status.code() == plain_status.code());
  if (beside.status.ok() && plain_status.ok()) {
    for (std::size_t f = 0; f < fetches.size(); ++f) {
      INFO("fetch " << fetches[f].name());
      CHECK(same_elements(beside.values[f], plain[f]));
    }
  }
  return beside;
}

}  // namespace dflow::testing
