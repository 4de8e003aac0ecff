#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cuda/cuda_device.hpp>

#include <utility>

namespace dflow {

namespace detail {

/// The GPUs that the driver finds; an error that says why there are none.
inline int count_gpus(cuda::Driver& driver) {
  int count = 0;
  const cuda::ErrorCode code = driver.count_devices(count);
  if (code == cuda::ErrorCode::insufficient_driver) {
    int of_machine = 0, of_program = 0;
    driver.versions(of_machine, of_program);
    const auto number = [](int version) { return str_cat(version / 1000, ".", version % 1000 / 10); };
    throw_error(Status::failed_precondition(
        of_machine == 0
            ? str_cat("there is no NVIDIA driver on this machine, so it has no CUDA GPU; the program was built with "
                      "CUDA ",
                      number(of_program))
            : str_cat("the NVIDIA driver of this machine is for CUDA ", number(of_machine),
                      ", and the program was built with CUDA ", number(of_program))));
  }
  cuda::require_ok(code, "counting the GPUs");
  return count;
}

}  // namespace detail

CudaDevice::CudaDevice(CudaDeviceOptions options)
    : driver_(options.driver != nullptr ? std::move(options.driver) : cuda::cuda_driver()),
      table_(driver_->programs() != nullptr ? chaining_cuda_kernels() : standard_cuda_kernels()),
      pool_(options.pool != nullptr ? std::move(options.pool) : std::make_shared<InlinePool>()) {
  const int count = detail::count_gpus(*driver_);
  if (options.ordinal < 0 || options.ordinal >= count) {
    throw_error(Status::not_found(
        str_cat("there is no GPU ", options.ordinal, " for device ", options.name, ": the driver finds ", count)));
  }
  cuda::require_ok(driver_->properties(options.ordinal, properties_), str_cat("asking GPU ", options.ordinal));
  state_ = std::make_unique<CudaState>(std::make_shared<cuda::DeviceCore>(driver_, options.ordinal),
                                       cuda::CudaAllocatorOptions{.limit_bytes = options.memory_limit_bytes},
                                       options.allows_tf32, options.convolution_workspace_bytes, options.name,
                                       options.capture, options.nccl ? cuda::DeviceGroup::of(driver_) : nullptr);
  context_.name = std::move(options.name);
  context_.type = Cuda::type;
  context_.incarnation = options.incarnation;
  context_.allocator = &state_->memory.allocator();
  context_.host_allocator = &state_->memory.pinned();
  context_.pool = pool_.get();
  context_.resources = &resources_;
  if (options.draw_seed != nullptr) context_.draw_seed = std::move(options.draw_seed);
  context_.memory = &state_->memory;
  context_.state = state_.get();
  if (options.files != nullptr) set_device_files(context_, std::move(options.files));
  context_.is_asynchronous = true;
  if (options.capture.runs_before >= 0) context_.recorder = &state_->recorder;
  // A block that goes back while work on it is issued is used again by later work alone: no release of its own.
}

CudaDevice::~CudaDevice() = default;

std::unique_ptr<DeviceStep> CudaDevice::begin_step() {
  return std::make_unique<cuda::CudaStep>(state_->memory, context_.name);
}

void CudaDevice::release_cached_memory() {
  state_->recorder.release();
  state_->memory.pinned().trim();
  Device::release_cached_memory();
}

std::vector<std::shared_ptr<Device>> cuda_devices(const CudaDeviceOptions& options) {
  CudaDeviceOptions numbered = options;
  if (numbered.driver == nullptr) numbered.driver = cuda::cuda_driver();
  const int count = detail::count_gpus(*numbered.driver);
  if (count == 0)
    throw_error(Status::not_found("there is no CUDA GPU in this machine, or none that this process may see"));
  DeviceName name = DeviceName::parse(options.name);
  if (!name.is_full()) throw_error(Status::invalid_argument(str_cat("'", options.name, "' is not a full device name")));
  std::vector<std::shared_ptr<Device>> devices;
  for (numbered.ordinal = 0; numbered.ordinal < count; ++numbered.ordinal) {
    numbered.name = name.to_string();
    devices.push_back(std::make_shared<CudaDevice>(numbered));
    ++*name.id;
  }
  return devices;
}

}  // namespace dflow
