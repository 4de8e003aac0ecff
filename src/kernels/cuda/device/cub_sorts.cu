// The one implementation of the table of sorts that calls CUB.

#include <dflow/kernels/cuda/driver/cub_sorts.hpp>

#include <cuda_runtime_api.h>
#include <cub/device/device_radix_sort.cuh>

namespace dflow::cuda {

namespace {

class CubSorts final : public Sorts {
 public:
  ErrorCode sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                           std::size_t& bytes) noexcept override {
    bytes = 0;
    SortCall call;
    call.count = count;
    call.key_bits = key_bits;
    return sort(device, call, nullptr, bytes, nullptr);
  }
  ErrorCode sort_pairs(int device, const SortCall& call, void* workspace, std::size_t workspace_bytes,
                       std::span<const MemoryUse>, StreamHandle stream) noexcept override {
    return sort(device, call, workspace, workspace_bytes, reinterpret_cast<cudaStream_t>(stream));
  }

 private:
  static ErrorCode sort(int device, const SortCall& call, void* workspace, std::size_t& bytes,
                        cudaStream_t stream) noexcept {
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess) {
      error = cub::DeviceRadixSort::SortPairs(workspace, bytes, call.keys, call.sorted_keys, call.values,
                                              call.sorted_values, call.count, 0, call.key_bits, stream);
    }
    if (error != cudaSuccess) static_cast<void>(cudaGetLastError());  // one that does not stick is forgotten
    return static_cast<ErrorCode>(error);
  }
};

}  // namespace

Sorts& cub_sorts() noexcept {
  static CubSorts sorts;
  return sorts;
}

}  // namespace dflow::cuda
