// The one implementation of the table of transforms that calls cuFFT.

#include <dflow/kernels/cuda/driver/cufft_transforms.hpp>

#include <cuda_runtime_api.h>
#include <cufft.h>

#include <list>
#include <memory>
#include <mutex>

namespace dflow::cuda {

namespace {

ErrorCode code_of(cufftResult result) noexcept {
  switch (result) {
    case CUFFT_SUCCESS:
      return ErrorCode::ok;
    case CUFFT_ALLOC_FAILED:
      return ErrorCode::out_of_memory;
    case CUFFT_INVALID_TYPE:
    case CUFFT_INVALID_VALUE:
    case CUFFT_INVALID_SIZE:
    case CUFFT_UNALIGNED_DATA:
      return ErrorCode::invalid_value;
    case CUFFT_SETUP_FAILED:
      return ErrorCode::initialization;
    case CUFFT_INVALID_DEVICE:
      return ErrorCode::invalid_device;
    case CUFFT_NOT_IMPLEMENTED:
    case CUFFT_NOT_SUPPORTED:
      return ErrorCode::not_supported;
    default:  // a device that is lost says so in the next call of the driver
      return ErrorCode::library_failed;
  }
}

cufftType type_of(const TransformCall& call) noexcept {
  const bool is_double = call.dtype == DType::complex128;
  switch (call.kind) {
    case TransformKind::real_forward:
      return is_double ? CUFFT_D2Z : CUFFT_R2C;
    case TransformKind::real_backward:
      return is_double ? CUFFT_Z2D : CUFFT_C2R;
    default:
      return is_double ? CUFFT_Z2Z : CUFFT_C2C;
  }
}

/// How the library computes a call, one after the other.
struct Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { destroy(); }

  void destroy() noexcept {
    if (!is_made) return;
    static_cast<void>(cudaSetDevice(device));
    static_cast<void>(cufftDestroy(handle));
    is_made = false;
  }

  ErrorCode make() noexcept {
    cufftResult result = cufftCreate(&handle);
    if (result != CUFFT_SUCCESS) return code_of(result);
    is_made = true;
    if (result = cufftSetAutoAllocation(handle, 0); result != CUFFT_SUCCESS) return code_of(result);
    long long length = call.length;
    return code_of(cufftMakePlanMany64(handle, 1, &length, nullptr, 1, 0, nullptr, 1, 0, type_of(call), call.batch,
                                       &workspace_bytes));
  }

  ErrorCode run(void* from, void* to, void* workspace, cudaStream_t stream) noexcept {
    cufftResult result = cufftSetStream(handle, stream);
    if (result == CUFFT_SUCCESS) result = cufftSetWorkArea(handle, workspace);
    if (result != CUFFT_SUCCESS) return code_of(result);
    const int direction = call.kind == TransformKind::forward ? CUFFT_FORWARD : CUFFT_INVERSE;
    switch (type_of(call)) {
      case CUFFT_R2C:
        return code_of(cufftExecR2C(handle, static_cast<cufftReal*>(from), static_cast<cufftComplex*>(to)));
      case CUFFT_D2Z:
        return code_of(cufftExecD2Z(handle, static_cast<cufftDoubleReal*>(from), static_cast<cufftDoubleComplex*>(to)));
      case CUFFT_C2R:
        return code_of(cufftExecC2R(handle, static_cast<cufftComplex*>(from), static_cast<cufftReal*>(to)));
      case CUFFT_Z2D:
        return code_of(cufftExecZ2D(handle, static_cast<cufftDoubleComplex*>(from), static_cast<cufftDoubleReal*>(to)));
      case CUFFT_C2C:
        return code_of(
            cufftExecC2C(handle, static_cast<cufftComplex*>(from), static_cast<cufftComplex*>(to), direction));
      default:
        return code_of(cufftExecZ2Z(handle, static_cast<cufftDoubleComplex*>(from),
                                    static_cast<cufftDoubleComplex*>(to), direction));
    }
  }

  int device = 0;
  TransformCall call;
  cufftHandle handle = 0;
  bool is_made = false;
  std::size_t workspace_bytes = 0;
};

/// Keeps the plans that were used last.
class CufftTransforms final : public Transforms {
 public:
  ErrorCode transform_workspace(int device, const TransformCall& call, std::size_t& bytes) noexcept override {
    return with_plan(device, call, [&](Plan& plan) {
      bytes = plan.workspace_bytes;
      return ErrorCode::ok;
    });
  }
  ErrorCode run_transform(int device, const TransformCall& call, void* from, void* to, void* workspace,
                          std::size_t workspace_bytes, std::span<const MemoryUse>,
                          StreamHandle stream) noexcept override {
    return with_plan(device, call, [&](Plan& plan) {
      if (plan.workspace_bytes > workspace_bytes) return ErrorCode::invalid_value;
      return plan.run(from, to, workspace, reinterpret_cast<cudaStream_t>(stream));
    });
  }

 private:
  static constexpr std::size_t max_plans = 64;

  /// With the plan of the call, the device being current on this thread.
  template <class Use>
  ErrorCode with_plan(int device, const TransformCall& call, const Use& use) noexcept {
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return static_cast<ErrorCode>(error);
    try {
      const std::lock_guard lock(mutex_);
      for (auto at = plans_.begin(); at != plans_.end(); ++at) {
        if (at->device != device || at->call != call) continue;
        plans_.splice(plans_.begin(), plans_, at);
        return use(plans_.front());
      }
      std::list<Plan> made(1);
      made.front().device = device;
      made.front().call = call;
      ErrorCode code = made.front().make();
      if (code == ErrorCode::out_of_memory) {  // which plans take, too
        plans_.remove_if([&](const Plan& plan) { return plan.device == device; });
        made.front().destroy();
        code = made.front().make();
      }
      if (code != ErrorCode::ok) return code;
      plans_.splice(plans_.begin(), made);
      if (plans_.size() > max_plans) plans_.pop_back();
      static_cast<void>(cudaSetDevice(device));  // the one that went may have been another device's
      return use(plans_.front());
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  std::mutex mutex_;
  std::list<Plan> plans_;  ///< the last used first
};

}  // namespace

Transforms& cufft_transforms() noexcept {
  static CufftTransforms& transforms = *new CufftTransforms;  // outlives whatever ends late
  return transforms;
}

}  // namespace dflow::cuda
