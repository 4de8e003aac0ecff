// Lists the GPUs that dflow can use, and runs a small step on each: `dflow-gpus`. Exit status 2 if there are none.

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/cuda/cuda_device.hpp>

#include <cmath>
#include <cstdio>
#include <memory>

namespace {

/// True if an expression gives the same values on the GPU as on the host.
bool computes(const std::shared_ptr<dflow::Device>& gpu) {
  dflow::Graph graph;
  const auto x = dflow::placeholder<float>(graph, {1000});
  dflow::Output<float> y;
  {
    const auto on = graph.device(gpu->name());
    y = dflow::sqrt(x) + 1.0f;
  }
  dflow::Session session(graph, {.devices = {gpu, std::make_shared<dflow::CpuDevice>(dflow::CpuDeviceOptions{})}});
  const dflow::Tensor<float> result = session.run({{x, dflow::Tensor<float>::full({1000}, 9)}}, y);
  for (const float value : result) {
    if (std::fabs(value - 4) > 1e-6f) return false;
  }
  return true;
}

}  // namespace

int main() {
  try {
    bool all_compute = true;
    for (const auto& device : dflow::cuda_devices()) {
      const auto& gpu = static_cast<const dflow::CudaDevice&>(*device);
      const auto& properties = gpu.properties();
      const bool is_right = computes(device);
      all_compute = all_compute && is_right;
      std::printf("%s: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB: %s\n", gpu.name().c_str(),
                  properties.name.c_str(), properties.major, properties.minor, properties.multiprocessors,
                  static_cast<double>(properties.memory_bytes) / (1 << 30),
                  is_right ? "a step runs" : "a step gives wrong values");
    }
    return all_compute ? 0 : 1;
  } catch (const dflow::Error& error) {
    std::fprintf(stderr, "dflow-gpus: %s\n", error.what());
    return 2;
  }
}
