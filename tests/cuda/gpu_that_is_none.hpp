#pragma once

#include "cuda/fake_driver.hpp"

#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/cuda/cuda_device.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::testing {

/// The devices of a session: the first GPUs of a driver, and the CPU.
inline std::vector<std::shared_ptr<Device>> gpus_and_cpu(const std::shared_ptr<FakeDriver>& driver, int gpus = 1,
                                                         cuda::GraphRecorder::Options capture = {}) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < gpus; ++i) {
    devices.push_back(std::make_shared<CudaDevice>(
        CudaDeviceOptions{.name = str_cat("/job:localhost/replica:0/task:0/device:GPU:", i),
                          .ordinal = i,
                          .driver = driver,
                          .capture = capture}));
  }
  devices.push_back(std::make_shared<CpuDevice>(CpuDeviceOptions{}));
  return devices;
}

/// Normal numbers; both parts of complex numbers are normal.
template <class T>
Tensor<T> random_numbers(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tensor<T> tensor(shape);
  for (T& each : tensor) {
    if constexpr (is_complex_element<T>) {
      each = T(normal(random), normal(random));
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      each = static_cast<T>(static_cast<std::int64_t>(normal(random)));  // a float out of T's range has no value in it
    } else {
      each = static_cast<T>(normal(random));
    }
  }
  return tensor;
}

/// The values that edges of one type have in a step with the given feeds.
template <class T>
std::vector<Tensor<T>> run_edges(Session& session, const std::vector<Feed>& feeds,
                                 const std::vector<Output<T>>& edges) {
  const std::vector<AnyOutput> erased(edges.begin(), edges.end());
  std::vector<AnyTensor> results(erased.size());
  session.run_erased({}, nullptr, feeds, erased, {}, results);
  std::vector<Tensor<T>> tensors;
  for (AnyTensor& each : results) tensors.emplace_back(std::move(each));
  return tensors;
}

/// Nothing was done out of order, and nothing is left. A device's own thread may end the device, and this function
/// waits for that.
inline void check_end(const FakeDriver& driver) {
  constexpr std::string_view nothing = "0 streams, 0 events, 0 blocks, 0 pinned blocks, 0 plans";
  for (int i = 0; i < 5000 && driver.alive() != nothing; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const std::string& violation : driver.violations()) FAIL_CHECK(violation);
  CHECK(driver.alive() == nothing);
}

}  // namespace dflow::testing
