#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/device_files.hpp>

namespace dflow {

namespace detail {
inline constexpr std::string_view device_files_key = "file_system";
}  // namespace detail

std::string DeviceFiles::debug_string() const { return "DeviceFiles"; }

void set_device_files(const DeviceContext& device, std::shared_ptr<FileSystem> files) {
  if (device.resources == nullptr) {
    throw_error(Status::failed_precondition(str_cat("device ", device.name, " keeps no resources")));
  }
  const auto container = device.resources->container(DeviceFiles::container_name);
  static_cast<void>(container->remove(detail::device_files_key));
  if (files != nullptr) container->insert(detail::device_files_key, std::make_shared<DeviceFiles>(std::move(files)));
}

std::shared_ptr<FileSystem> device_files(const DeviceContext& device) {
  if (device.resources != nullptr) {
    const auto found = device.resources->container(DeviceFiles::container_name)
                           ->lookup_if_exists<DeviceFiles>(detail::device_files_key);
    if (found != nullptr) return found->files();
  }
  return machine_files();
}

}  // namespace dflow
