// The one implementation of the driver's table that calls CUDA.

#include <dflow/kernels/cuda/driver/cub_sorts.hpp>
#include <dflow/kernels/cuda/driver/cublas_products.hpp>
#include <dflow/kernels/cuda/driver/cudnn_convolutions.hpp>
#include <dflow/kernels/cuda/driver/cufft_transforms.hpp>
#include <dflow/kernels/cuda/driver/cusolver_solvers.hpp>
#include <dflow/kernels/cuda/driver/driver.hpp>
#include <dflow/kernels/cuda/driver/nccl_collectives.hpp>
#include <dflow/kernels/cuda/driver/nvrtc_programs.hpp>

#include <cuda_runtime_api.h>

namespace dflow::cuda {

namespace {

ErrorCode code_of(cudaError_t error) noexcept {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());  // one that does not stick is forgotten
  return static_cast<ErrorCode>(error);
}
cudaStream_t native(StreamHandle stream) noexcept { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t native(EventHandle event) noexcept { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraphExec_t native(GraphHandle graph) noexcept { return reinterpret_cast<cudaGraphExec_t>(graph); }

/// Calls with the device current on this thread, as CUDA wants it.
template <class Call>
ErrorCode on(int device, const Call& call) noexcept {
  const cudaError_t error = cudaSetDevice(device);
  return error != cudaSuccess ? code_of(error) : code_of(call());
}

class CudaDriver final : public Driver {
 public:
  ErrorCode count_devices(int& count) noexcept override { return code_of(cudaGetDeviceCount(&count)); }
  ErrorCode versions(int& driver, int& runtime) noexcept override {
    driver = runtime = 0;
    const cudaError_t error = cudaRuntimeGetVersion(&runtime);
    return error != cudaSuccess ? code_of(error) : code_of(cudaDriverGetVersion(&driver));
  }
  ErrorCode properties(int device, DeviceProperties& properties) noexcept override {
    cudaDeviceProp found;
    const cudaError_t error = cudaGetDeviceProperties(&found, device);
    if (error != cudaSuccess) return code_of(error);
    try {
      properties = {found.name, found.major, found.minor, found.multiProcessorCount, found.totalGlobalMem};
    } catch (...) {
      return ErrorCode::out_of_memory;
    }
    return ErrorCode::ok;
  }
  ErrorCode memory_info(int device, std::size_t& free_bytes, std::size_t& total_bytes) noexcept override {
    return on(device, [&] { return cudaMemGetInfo(&free_bytes, &total_bytes); });
  }

  ErrorCode create_stream(int device, StreamHandle& stream) noexcept override {
    return on(device, [&] {
      cudaStream_t made = nullptr;
      const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
      stream = static_cast<StreamHandle>(reinterpret_cast<std::uintptr_t>(made));
      return error;
    });
  }
  ErrorCode destroy_stream(int device, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaStreamDestroy(native(stream)); });
  }
  ErrorCode create_event(int device, EventHandle& event) noexcept override {
    return on(device, [&] {
      cudaEvent_t made = nullptr;
      const cudaError_t error = cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
      event = static_cast<EventHandle>(reinterpret_cast<std::uintptr_t>(made));
      return error;
    });
  }
  ErrorCode destroy_event(int device, EventHandle event) noexcept override {
    return on(device, [&] { return cudaEventDestroy(native(event)); });
  }
  ErrorCode record(int device, EventHandle event, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaEventRecord(native(event), native(stream)); });
  }
  ErrorCode wait(int device, StreamHandle stream, EventHandle event) noexcept override {
    return on(device, [&] { return cudaStreamWaitEvent(native(stream), native(event), 0); });
  }
  ErrorCode query(int device, EventHandle event) noexcept override {
    return on(device, [&] { return cudaEventQuery(native(event)); });
  }
  ErrorCode wait_until_idle(int device, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaStreamSynchronize(native(stream)); });
  }

  ErrorCode allocate(int device, std::size_t bytes, StreamHandle stream, void*& block) noexcept override {
    return on(device, [&] { return cudaMallocAsync(&block, bytes, native(stream)); });
  }
  ErrorCode free(int device, void* block, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaFreeAsync(block, native(stream)); });
  }
  ErrorCode allocate_pinned(std::size_t bytes, void*& block) noexcept override {
    return code_of(cudaHostAlloc(&block, bytes, cudaHostAllocPortable));
  }
  ErrorCode free_pinned(void* block) noexcept override { return code_of(cudaFreeHost(block)); }

  ErrorCode copy(int device, void* to, const void* from, std::size_t bytes, CopyKind kind,
                 StreamHandle stream) noexcept override {
    constexpr cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
    return on(device, [&] { return cudaMemcpyAsync(to, from, bytes, kinds[static_cast<int>(kind)], native(stream)); });
  }
  ErrorCode copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                      StreamHandle stream) noexcept override {
    return on(to_device, [&] { return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, native(stream)); });
  }
  ErrorCode fill(int device, void* to, int byte, std::size_t bytes, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaMemsetAsync(to, byte, bytes, native(stream)); });
  }
  ErrorCode launch(int device, const KernelFunction& function, GridShape shape, const void* arguments,
                   std::span<const MemoryUse>, StreamHandle stream) noexcept override {
    if (function.entry == nullptr) return ErrorCode::no_kernel_image;
    return on(device, [&] {
      void* all[] = {const_cast<void*>(arguments)};
      return cudaLaunchKernel(function.entry, dim3(shape.blocks), dim3(shape.threads), all, 0, native(stream));
    });
  }
  ErrorCode call_host(int device, StreamHandle stream, void (*function)(void* data), void* data) noexcept override {
    return on(device, [&] { return cudaLaunchHostFunc(native(stream), function, data); });
  }
  ErrorCode begin_capture(int device, StreamHandle stream) noexcept override {
    // Memory may be allocated meanwhile, by this thread too: on another stream.
    return on(device, [&] { return cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed); });
  }
  ErrorCode end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept override {
    return on(device, [&] {
      cudaGraph_t noted = nullptr;
      cudaError_t error = cudaStreamEndCapture(native(stream), &noted);
      if (error != cudaSuccess) return error;
      cudaGraphExec_t made = nullptr;
      if (graph != nullptr) error = cudaGraphInstantiate(&made, noted, 0);
      cudaGraphDestroy(noted);
      if (graph != nullptr && error == cudaSuccess)
        *graph = static_cast<GraphHandle>(reinterpret_cast<std::uintptr_t>(made));
      return error;
    });
  }
  ErrorCode launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept override {
    return on(device, [&] { return cudaGraphLaunch(native(graph), native(stream)); });
  }
  ErrorCode destroy_graph(int device, GraphHandle graph) noexcept override {
    return on(device, [&] { return cudaGraphExecDestroy(native(graph)); });
  }
  Products& products() noexcept override { return cublas_products(); }
  Sorts& sorts() noexcept override { return cub_sorts(); }
  Solvers& solvers() noexcept override { return cusolver_solvers(); }
  Transforms& transforms() noexcept override { return cufft_transforms(); }
  Convolutions* convolutions() noexcept override { return cudnn_convolutions(); }
  Programs* programs() noexcept override { return nvrtc_programs(); }
  Collectives* collectives() noexcept override { return nccl_collectives(); }
};

}  // namespace

std::shared_ptr<Driver> cuda_driver() {
  // It has no state; that it is one says that devices made apart can copy to each other.
  static const auto driver = std::make_shared<CudaDriver>();
  return driver;
}

}  // namespace dflow::cuda
