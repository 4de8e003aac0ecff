#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace dflow {

/// The files that the kernels of a device read and write (`SessionOptions::files`, `net::ServerOptions::files`,
/// `CpuDeviceOptions::files`, `CudaDeviceOptions::files`). It is a resource of the device. A device without one uses
/// `machine_files`.
///
/// Thread safety: immutable.
class DeviceFiles final : public Resource {
 public:
  static constexpr std::string_view container_name = "_files";

  explicit DeviceFiles(std::shared_ptr<FileSystem> files) : files_(std::move(files)) {}

  std::string debug_string() const override;
  const std::shared_ptr<FileSystem>& files() const noexcept { return files_; }

 private:
  const std::shared_ptr<FileSystem> files_;
};

/// From now on the device's kernels use these files, until the device's resources are cleared; null: the machine's.
/// Errors: FailedPrecondition if the device keeps no resources.
void set_device_files(const DeviceContext& device, std::shared_ptr<FileSystem> files);

/// The files of the device's kernels.
std::shared_ptr<FileSystem> device_files(const DeviceContext& device);

}  // namespace dflow
