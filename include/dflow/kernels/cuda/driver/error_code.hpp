#pragma once

#include <dflow/base/status.hpp>

#include <string_view>

namespace dflow::cuda {

/// The result of a call of the driver. The numbers are CUDA's (`cudaError_t`), so that any other code can be carried
/// too.
enum class ErrorCode : int {
  ok = 0,
  invalid_value = 1,
  out_of_memory = 2,
  initialization = 3,
  unloading = 4,
  insufficient_driver = 35,
  devices_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  no_kernel_image = 209,
  uncorrectable_memory = 214,
  invalid_handle = 400,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  peer_access_enabled = 704,
  assertion = 710,
  hardware_stack = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failure = 719,
  not_permitted = 800,
  not_supported = 801,
  system_not_ready = 802,
  driver_mismatch = 803,
  capture_unsupported = 900,
  capture_invalidated = 901,
  unknown = 999,
  library_failed = 100'000,  ///< none of CUDA's: a library on top of it says no more than that it failed
};

/// After a sticky error every later call of the process for that device fails with the same error.
constexpr bool is_sticky(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::uncorrectable_memory:
    case ErrorCode::illegal_address:
    case ErrorCode::launch_timeout:
    case ErrorCode::assertion:
    case ErrorCode::hardware_stack:
    case ErrorCode::illegal_instruction:
    case ErrorCode::misaligned_address:
    case ErrorCode::invalid_address_space:
    case ErrorCode::invalid_pc:
    case ErrorCode::launch_failure:
    case ErrorCode::unknown:
      return true;
    default:
      return false;
  }
}

/// As CUDA's manual calls it: "cudaErrorIllegalAddress"; empty for a code that is not listed above.
std::string_view name_of(ErrorCode code) noexcept;

/// Ok for ok. Else a status with the failed action, and CUDA's name and number of the error: ResourceExhausted if
/// memory or a launch's resources are short. FailedPrecondition if the driver is too old or does not match. NotFound
/// if there is no such device. Unavailable if the device is taken or lost for this process. Unimplemented if the
/// device cannot do it. Internal for the rest.
Status status_of(ErrorCode code, std::string_view doing);

/// Throws that status unless the code is ok.
void require_ok(ErrorCode code, std::string_view doing);

}  // namespace dflow::cuda
