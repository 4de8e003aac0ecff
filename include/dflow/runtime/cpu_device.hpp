#pragma once

/// Public: the host's processors as a device, with settings.

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/runtime/device.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dflow {

class FileSystem;

struct CpuDeviceOptions {
  std::string name = "/job:localhost/replica:0/task:0/device:CPU:0";
  std::uint64_t incarnation = 0;
  std::shared_ptr<ThreadPool> pool = nullptr;      ///< null: everything runs in the thread that calls
  std::shared_ptr<Allocator> allocator = nullptr;  ///< null: a caching allocator of the device's own
  cpu::CpuOptions kernels = {};  ///< backend, instruction set, reproducibility; its cache is set by the device
  /// Draws the seeds of random streams that were given none, from any thread; null: `system_seed`.
  std::function<std::uint64_t()> draw_seed = nullptr;
  std::shared_ptr<FileSystem> files = nullptr;  ///< that its kernels read and write; null: the machine's
};

/// The host's processors as a device. Several of them may share a pool; each has its own variables.
///
/// Thread safety: as Device.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options);
  ~CpuDevice() override;

  void release_cached_memory() override;

 private:
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<Allocator> allocator_;
  ResourceContainers resources_;
  cpu::KernelCache kernel_cache_;
  CpuState state_;
};

/// Devices with equal options except for their number, which counts up from the name's. Give them to
/// `SessionOptions::devices` if the kernels need other settings than the session's own devices have.
///
/// ```cpp
/// df::Session session(graph, {.devices = df::cpu_devices(1, {.kernels = {.backend = df::cpu::CpuBackend::builtin}})});
/// ```
///
/// Errors: InvalidArgument if the name is not a full device name, or `count` is negative.
std::vector<std::shared_ptr<Device>> cpu_devices(int count, const CpuDeviceOptions& options = {});

}  // namespace dflow
