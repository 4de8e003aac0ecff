#pragma once

#include <dflow/base/status.hpp>
#include <dflow/kernels/cpu/raw/kernel_cache.hpp>
#include <dflow/kernels/cpu/raw/options.hpp>
#include <dflow/core/pool_allocator.hpp>
#include <dflow/kernels/kernel_context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace dflow {

/// A place where kernels run: a name, an allocator, resources, and copies from and to host memory. A third party adds one
/// by deriving from this class and registering kernels for its type.
///
/// Thread safety: all functions may be called from any thread.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const std::string& name() const noexcept { return context_.name; }
  const std::string& type() const noexcept { return context_.type; }
  const DeviceContext& context() const noexcept { return context_; }

  /// The device's allocator, to be kept by tensors that may outlive the device; null if it outlives everything.
  virtual std::shared_ptr<Allocator> shared_allocator() const { return nullptr; }

  /// Brings a tensor from another device of this process here; the default shares the bytes, which is right where both
  /// devices address the same memory.
  virtual AnyTensor receive(const AnyTensor& tensor, const Device& source) {
    return static_cast<void>(source), tensor;
  }

 protected:
  DeviceContext context_;
};

struct CpuDeviceOptions {
  std::string name = "/job:localhost/replica:0/task:0/device:CPU:0";
  std::shared_ptr<ThreadPool> pool;
  std::shared_ptr<Allocator> allocator;  ///< null: a caching allocator of the device's own
  cpu::CpuOptions kernels;  ///< backend, instruction set, reproducibility; its cache is set by the device
};

/// The host's processors as a device. Several of them may share a pool; each has its own variables.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options);
  ~CpuDevice() override;

  std::shared_ptr<Allocator> shared_allocator() const override { return options_.allocator; }

 private:
  CpuDeviceOptions options_;
  ResourceContainer resources_;
  cpu::KernelCache kernel_cache_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/device.ipp>
#endif
