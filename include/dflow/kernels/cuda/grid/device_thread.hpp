#pragma once

#include <cstdint>

/// The thread of a GPU, as the body of a kernel sees it; `EmulatedThread` is the same on the host. Included by units
/// that nvcc compiles.
#if defined(__CUDACC__)

namespace dflow::cuda {

class DeviceThread {
 public:
  __device__ std::uint32_t index_in_block() const { return threadIdx.x; }
  __device__ std::uint32_t block() const { return blockIdx.x; }
  __device__ std::uint32_t threads() const { return blockDim.x; }
  __device__ std::uint32_t blocks() const { return gridDim.x; }

  /// Among all threads of the grid.
  __device__ std::int64_t index() const { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
  /// How many there are.
  __device__ std::int64_t count() const { return std::int64_t{gridDim.x} * blockDim.x; }

  /// Until all threads of the block have come here.
  __device__ void barrier() const { __syncthreads(); }

  /// The block's own memory, `Body::shared_bytes` of it.
  template <class Shared>
  __device__ Shared& shared() const {
    __shared__ alignas(Shared) unsigned char bytes[sizeof(Shared)];
    return *reinterpret_cast<Shared*>(bytes);
  }

  template <class T>
  __device__ T add(T* to, T value) const {
    return atomicAdd(to, value);
  }
  __device__ std::uint32_t compare_and_swap(std::uint32_t* at, std::uint32_t expected, std::uint32_t wanted) const {
    return atomicCAS(at, expected, wanted);
  }
};

}  // namespace dflow::cuda

#endif
