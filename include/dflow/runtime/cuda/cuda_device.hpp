#pragma once

/// Public: an NVIDIA GPU as a device.

#include <dflow/base/files/file_system.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/runtime/device.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace dflow {

struct CudaDeviceOptions {
  std::string name = "/job:localhost/replica:0/task:0/device:GPU:0";
  std::uint64_t incarnation = 0;
  int ordinal = 0;  ///< the driver's number of the GPU
  /// Null: CUDA's (`cuda::cuda_driver`).
  std::shared_ptr<cuda::Driver> driver = nullptr;
  std::shared_ptr<ThreadPool> pool = nullptr;  ///< for kernels that compute on the host; null: in the thread that calls
  /// The device takes no more of the GPU's memory than this.
  std::size_t memory_limit_bytes = std::numeric_limits<std::size_t>::max();
  /// Products and convolutions of float may multiply in TF32, of 10 bits: faster, and less exact.
  bool allows_tf32 = false;
  /// The most memory that a convolution takes beside its operands; with cuDNN it takes the size of the filter in
  /// addition. It takes at least the memory for one place of the filter, or for one image in its gradient by the
  /// images.
  std::size_t convolution_workspace_bytes = std::size_t{1} << 27;
  /// Captures kernels that run again and again on inputs of the same shapes into CUDA graphs. The graphs are launched
  /// instead of the kernels.
  cuda::GraphRecorder::Options capture = {};
  /// The device computes collectives by NCCL with other devices that do, if the component was built with NCCL.
  bool nccl = true;
  /// Draws the seeds of random streams that were given none, from any thread; null: `system_seed`.
  std::function<std::uint64_t()> draw_seed = nullptr;
  /// The files of its kernels, in which loops may keep values for their gradients; null: the machine's. Ops that read
  /// and write files run on the CPU.
  std::shared_ptr<FileSystem> files = nullptr;
};

/// An NVIDIA GPU as a device. Kernels are issued to one stream, copies run beside them on others, and no thread of the
/// host waits for either. If the device has no kernel for an op and soft placement allows it, the op runs on the CPU.
///
/// Errors of the constructor: NotFound if there is no such GPU; FailedPrecondition, with CUDA's message, if the
/// machine's driver is too old for the program.
///
/// Thread safety: as Device.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(CudaDeviceOptions options = {});
  ~CudaDevice() override;

  const KernelTable* kernels() const noexcept override { return &table_; }
  DeviceCollectives* collectives() const noexcept override { return state_->seat.group().get(); }
  std::unique_ptr<DeviceStep> begin_step() override;
  void release_cached_memory() override;

  const cuda::DeviceProperties& properties() const noexcept { return properties_; }
  /// Counts of the graphs captured and launched so far.
  cuda::GraphRecorder::Counts graphs() const noexcept { return state_->recorder.counts(); }
  /// Counts of the chains of elementwise nodes (`PassOptions::chains`) so far.
  cuda::ChainCounts chains() const { return state_->chain_counter.counts(); }

 private:
  std::shared_ptr<cuda::Driver> driver_;
  KernelTable table_;
  cuda::DeviceProperties properties_;
  std::shared_ptr<ThreadPool> pool_;
  ResourceContainers resources_;
  std::unique_ptr<CudaState> state_;
};

/// The GPUs of a driver (null: the process's own) as devices numbered from 0.
/// Errors: as the constructor of CudaDevice; NotFound if there are none.
std::vector<std::shared_ptr<Device>> cuda_devices(const CudaDeviceOptions& options = {});

}  // namespace dflow
