#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <string>
#include <utility>

namespace dflow::cuda {

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok:
      return "cudaSuccess";
    case ErrorCode::invalid_value:
      return "cudaErrorInvalidValue";
    case ErrorCode::out_of_memory:
      return "cudaErrorMemoryAllocation";
    case ErrorCode::initialization:
      return "cudaErrorInitializationError";
    case ErrorCode::unloading:
      return "cudaErrorCudartUnloading";
    case ErrorCode::insufficient_driver:
      return "cudaErrorInsufficientDriver";
    case ErrorCode::devices_unavailable:
      return "cudaErrorDevicesUnavailable";
    case ErrorCode::no_device:
      return "cudaErrorNoDevice";
    case ErrorCode::invalid_device:
      return "cudaErrorInvalidDevice";
    case ErrorCode::no_kernel_image:
      return "cudaErrorNoKernelImageForDevice";
    case ErrorCode::uncorrectable_memory:
      return "cudaErrorECCUncorrectable";
    case ErrorCode::invalid_handle:
      return "cudaErrorInvalidResourceHandle";
    case ErrorCode::not_ready:
      return "cudaErrorNotReady";
    case ErrorCode::illegal_address:
      return "cudaErrorIllegalAddress";
    case ErrorCode::launch_out_of_resources:
      return "cudaErrorLaunchOutOfResources";
    case ErrorCode::launch_timeout:
      return "cudaErrorLaunchTimeout";
    case ErrorCode::peer_access_enabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case ErrorCode::assertion:
      return "cudaErrorAssert";
    case ErrorCode::hardware_stack:
      return "cudaErrorHardwareStackError";
    case ErrorCode::illegal_instruction:
      return "cudaErrorIllegalInstruction";
    case ErrorCode::misaligned_address:
      return "cudaErrorMisalignedAddress";
    case ErrorCode::invalid_address_space:
      return "cudaErrorInvalidAddressSpace";
    case ErrorCode::invalid_pc:
      return "cudaErrorInvalidPc";
    case ErrorCode::launch_failure:
      return "cudaErrorLaunchFailure";
    case ErrorCode::not_permitted:
      return "cudaErrorNotPermitted";
    case ErrorCode::not_supported:
      return "cudaErrorNotSupported";
    case ErrorCode::system_not_ready:
      return "cudaErrorSystemNotReady";
    case ErrorCode::driver_mismatch:
      return "cudaErrorSystemDriverMismatch";
    case ErrorCode::capture_unsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case ErrorCode::capture_invalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case ErrorCode::unknown:
      return "cudaErrorUnknown";
    case ErrorCode::library_failed:
      return "a library's call failed";
  }
  return {};
}

Status status_of(ErrorCode code, std::string_view doing) {
  if (code == ErrorCode::ok) return Status();
  const std::string_view name = name_of(code);
  std::string message =
      str_cat(doing, ": ", name.empty() ? std::string_view("CUDA error") : name, " (", static_cast<int>(code), ")");
  switch (code) {
    case ErrorCode::out_of_memory:
    case ErrorCode::launch_out_of_resources:
      return Status::resource_exhausted(std::move(message));
    case ErrorCode::insufficient_driver:
      return Status::failed_precondition(
          std::move(message) +
          "; the driver of this machine is older than the CUDA runtime that this program was built with");
    case ErrorCode::driver_mismatch:
    case ErrorCode::system_not_ready:
    case ErrorCode::no_kernel_image:
      return Status::failed_precondition(std::move(message));
    case ErrorCode::no_device:
      return Status::not_found(std::move(message) +
                               "; there is no CUDA GPU in this machine, or none that this process may see");
    case ErrorCode::invalid_device:
      return Status::not_found(std::move(message));
    case ErrorCode::not_supported:
      return Status::unimplemented(std::move(message));
    case ErrorCode::devices_unavailable:
      return Status::unavailable(std::move(message));
    default:
      if (is_sticky(code)) {
        return Status::unavailable(std::move(message) +
                                   "; the GPU is lost for this process: every later call on it fails alike");
      }
      return Status::internal(std::move(message));
  }
}

void require_ok(ErrorCode code, std::string_view doing) {
  if (code != ErrorCode::ok) [[unlikely]]
    throw_error(status_of(code, doing));
}

}  // namespace dflow::cuda
