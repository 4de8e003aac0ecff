// The one implementation of the table of collectives that calls NCCL, which is loaded when GPUs are first connected.

#include <dflow/kernels/cuda/driver/nccl_collectives.hpp>

#if defined(DFLOW_HAS_NCCL)

#include <dflow/base/str_cat.hpp>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::cuda {

namespace {

/// The library's functions, found where the program runs: of major version 2.
struct Nccl {
  decltype(&ncclCommInitAll) init_all = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  std::string missing;  ///< why it cannot be used; else empty

  Nccl() {
    library_ = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      const char* const why = dlerror();
      missing = why != nullptr ? why : "libnccl.so.2 cannot be loaded";
      return;
    }
    find("ncclCommInitAll", init_all);
    find("ncclCommDestroy", destroy);
    find("ncclCommAbort", abort);
    find("ncclCommGetAsyncError", async_error);
    find("ncclGroupStart", group_start);
    find("ncclGroupEnd", group_end);
    find("ncclAllReduce", all_reduce);
    find("ncclAllGather", all_gather);
    find("ncclBroadcast", broadcast);
    find("ncclGetErrorString", error_string);
    find("ncclGetLastError", last_error);
  }

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing.empty()) missing = str_cat("NCCL lacks ", name);
  }

  void* library_ = nullptr;  ///< for good
};

const Nccl& nccl() {
  static const Nccl& library = *new Nccl;  // outlives whatever ends late
  return library;
}

/// Of what was called just now and has explained itself so. What went wrong in CUDA may have gone wrong in another
/// thread.
ErrorCode code_of(ncclResult_t result, std::string_view why) noexcept {
  switch (result) {
    case ncclSuccess:
      return ErrorCode::ok;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return ErrorCode::invalid_value;
    case ncclUnhandledCudaError: {
      const auto code = static_cast<ErrorCode>(cudaGetLastError());
      if (code != ErrorCode::ok) return code;
      break;
    }
    default:
      break;
  }
  return why.find("out of memory") != std::string_view::npos ? ErrorCode::out_of_memory : ErrorCode::library_failed;
}

bool find_type(DType dtype, ncclDataType_t& type) noexcept {
  switch (dtype) {
    case DType::float32:
      type = ncclFloat32;
      return true;
    case DType::float64:
      type = ncclFloat64;
      return true;
    case DType::int8:
      type = ncclInt8;
      return true;
    case DType::uint8:
      type = ncclUint8;
      return true;
    case DType::int32:
      type = ncclInt32;
      return true;
    case DType::uint32:
      type = ncclUint32;
      return true;
    case DType::int64:
      type = ncclInt64;
      return true;
    case DType::uint64:
      type = ncclUint64;
      return true;
    default:  // 16-bit floats would be rounded after each addition
      return false;
  }
}

using Communicators = std::vector<ncclComm_t>;

class NcclCollectives final : public Collectives {
 public:
  bool can_reduce(DType dtype) const noexcept override {
    ncclDataType_t type;
    return find_type(dtype, type);
  }

  ErrorCode make_communicators(std::span<const int> devices, CommunicatorsHandle& communicators,
                               std::string& why) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      if (!nccl().missing.empty()) {
        why = nccl().missing;
        return ErrorCode::not_supported;
      }
      if (const ErrorCode code = share_pools(devices, why); code != ErrorCode::ok) return code;
      auto made = std::make_unique<Communicators>(devices.size());
      cudaGetLastError();  // no earlier error is taken for one of this call
      const ncclResult_t result = nccl().init_all(made->data(), static_cast<int>(devices.size()), devices.data());
      if (result == ncclSuccess) {
        communicators = static_cast<CommunicatorsHandle>(reinterpret_cast<std::uintptr_t>(made.release()));
        return ErrorCode::ok;
      }
      explain(result, nullptr, why);
      return code_of(result, why);
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
  }

  ErrorCode destroy_communicators(CommunicatorsHandle communicators, bool aborts) noexcept override {
    const std::lock_guard lock(mutex_);
    const std::unique_ptr<Communicators> all(&of(communicators));
    // Members are ended together: one may wait for the others.
    ncclResult_t result = aborts ? nccl().group_start() : ncclSuccess;
    for (const ncclComm_t each : *all) {
      const ncclResult_t ended = aborts ? nccl().abort(each) : nccl().destroy(each);
      if (result == ncclSuccess) result = ended;
    }
    if (aborts) {
      const ncclResult_t ended = nccl().group_end();
      if (result == ncclSuccess) result = ended;
    }
    return code_of(result, {});
  }

  ErrorCode check_communicators(CommunicatorsHandle communicators, std::string& why) noexcept override {
    for (const ncclComm_t each : of(communicators)) {
      ncclResult_t found = ncclSuccess;
      ncclResult_t result = nccl().async_error(each, &found);
      if (result == ncclSuccess) result = found;
      if (result == ncclSuccess) continue;
      explain(result, each, why);
      return code_of(result, why);
    }
    return ErrorCode::ok;
  }

  ErrorCode run_collective(CommunicatorsHandle communicators, const CollectiveCall& call,
                           std::span<const CollectiveMember> members, std::string& why) noexcept override {
    const std::lock_guard lock(mutex_);
    const Communicators& all = of(communicators);
    cudaGetLastError();
    ncclResult_t result = nccl().group_start();
    if (result == ncclSuccess) {
      for (std::size_t m = 0; m < members.size() && result == ncclSuccess; ++m) {
        result = add(call, members[m], all[m]);
      }
      const ncclResult_t ended = nccl().group_end();
      if (result == ncclSuccess) result = ended;
    }
    if (result != ncclSuccess) explain(result, all.front(), why);
    return code_of(result, why);
  }

 private:
  static Communicators& of(CommunicatorsHandle communicators) noexcept {
    return *reinterpret_cast<Communicators*>(static_cast<std::uintptr_t>(communicators));
  }

  /// Tensors lie in the devices' memory pools, whose blocks no other device may touch unless it is told so: NCCL does
  /// where it can, and asks nobody.
  static ErrorCode share_pools(std::span<const int> devices, std::string& why) {
    cudaError_t error = cudaSuccess;
    for (const int owner : devices) {
      cudaMemPool_t pool = nullptr;
      error = cudaDeviceGetMemPool(&pool, owner);  // that `cudaMallocAsync` takes from
      for (const int peer : devices) {
        int can_access = 0;
        if (error == cudaSuccess && peer != owner) error = cudaDeviceCanAccessPeer(&can_access, peer, owner);
        if (error != cudaSuccess || can_access == 0) continue;
        cudaMemAccessDesc access = {};
        access.location.type = cudaMemLocationTypeDevice;
        access.location.id = peer;
        access.flags = cudaMemAccessFlagsProtReadWrite;
        error = cudaMemPoolSetAccess(pool, &access, 1);
      }
      if (error == cudaSuccess) continue;
      cudaGetLastError();  // no later call is told of it again
      why = cudaGetErrorString(error);
      return static_cast<ErrorCode>(error);
    }
    return ErrorCode::ok;
  }

  static ncclResult_t add(const CollectiveCall& call, const CollectiveMember& member, ncclComm_t by) noexcept {
    const auto stream = reinterpret_cast<cudaStream_t>(static_cast<std::uintptr_t>(member.stream));
    const std::size_t bytes = call.count * size_of(call.dtype);
    if (call.kind == CollectiveKind::gather) {
      return nccl().all_gather(member.from, member.to, bytes, ncclUint8, by, stream);
    }
    if (call.kind == CollectiveKind::broadcast) {
      return nccl().broadcast(member.from, member.to, bytes, ncclUint8, 0, by, stream);
    }
    ncclDataType_t type;
    if (!find_type(call.dtype, type)) return ncclInvalidArgument;
    const ncclRedOp_t reduction = call.kind == CollectiveKind::sum ? ncclSum : ncclProd;
    return nccl().all_reduce(member.from, member.to, call.count, type, reduction, by, stream);
  }

  static void explain(ncclResult_t result, ncclComm_t by, std::string& why) noexcept {
    try {
      why = nccl().error_string(result);
      const char* const more = nccl().last_error(by);
      if (more != nullptr && *more != '\0') why += str_cat(": ", std::string_view(more));
    } catch (...) {
      why.clear();
    }
  }

  /// What calls at once reaches all devices in one order; nor does a connection that is made or undone, which may wait
  /// for a GPU, stand between what two of them have been given.
  std::mutex mutex_;
};

}  // namespace

Collectives* nccl_collectives() noexcept {
  static NcclCollectives& collectives = *new NcclCollectives;  // outlives whatever ends late
  return &collectives;
}

}  // namespace dflow::cuda

#else

namespace dflow::cuda {

Collectives* nccl_collectives() noexcept { return nullptr; }

}  // namespace dflow::cuda

#endif
