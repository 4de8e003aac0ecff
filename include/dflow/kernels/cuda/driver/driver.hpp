#pragma once

#include <dflow/kernels/cuda/driver/collectives.hpp>
#include <dflow/kernels/cuda/driver/convolutions.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>
#include <dflow/kernels/cuda/driver/products.hpp>
#include <dflow/kernels/cuda/driver/programs.hpp>
#include <dflow/kernels/cuda/driver/solvers.hpp>
#include <dflow/kernels/cuda/driver/sorts.hpp>
#include <dflow/kernels/cuda/driver/transforms.hpp>
#include <dflow/kernels/cuda/grid/kernel_function.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace dflow::cuda {

// Handles of a driver; 0 is none.
enum class StreamHandle : std::uintptr_t { none = 0 };
enum class EventHandle : std::uintptr_t { none = 0 };
enum class GraphHandle : std::uintptr_t { none = 0 };

struct DeviceProperties {
  std::string name;
  int major = 0;  ///< of the compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
};

/// A block that issued work reads or writes, for a driver that checks the order of issued work.
struct MemoryUse {
  const void* block = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

enum class CopyKind : std::uint8_t { to_device, to_host, on_device };

/// All functions of CUDA's runtime that dflow uses, as a thin table. `cuda_driver()` calls CUDA. Another
/// implementation, for tests, is a model of CUDA that checks the order of calls and injects errors.
///
/// Functions return at once with an error code, and do not throw. Work that they issue to a stream runs after all
/// earlier work of that stream. Device numbers count from 0.
///
/// Thread safety: all functions may be called from any thread.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  virtual ErrorCode count_devices(int& count) noexcept = 0;
  /// The versions of the driver, and of the runtime that the program was built with: 13000 is 13.0. A driver of 0 is
  /// none.
  virtual ErrorCode versions(int& driver, int& runtime) noexcept = 0;
  virtual ErrorCode properties(int device, DeviceProperties& properties) noexcept = 0;
  virtual ErrorCode memory_info(int device, std::size_t& free_bytes, std::size_t& total_bytes) noexcept = 0;

  virtual ErrorCode create_stream(int device, StreamHandle& stream) noexcept = 0;
  /// Work that was issued to the stream still runs.
  virtual ErrorCode destroy_stream(int device, StreamHandle stream) noexcept = 0;
  virtual ErrorCode create_event(int device, EventHandle& event) noexcept = 0;
  virtual ErrorCode destroy_event(int device, EventHandle event) noexcept = 0;
  /// The event passes when all that has been issued to the stream by now is done.
  virtual ErrorCode record(int device, EventHandle event, StreamHandle stream) noexcept = 0;
  /// Work that is issued to the stream from now on runs after the event, as it was last recorded.
  virtual ErrorCode wait(int device, StreamHandle stream, EventHandle event) noexcept = 0;
  /// ok: it has passed; not_ready: it has not; else an error of work before it.
  virtual ErrorCode query(int device, EventHandle event) noexcept = 0;
  /// Blocks until all work issued to the stream is done: only for the end of a device.
  virtual ErrorCode wait_until_idle(int device, StreamHandle stream) noexcept = 0;

  /// A block for work that is issued to that stream from now on.
  virtual ErrorCode allocate(int device, std::size_t bytes, StreamHandle stream, void*& block) noexcept = 0;
  /// Only work that was issued to the stream before this call still uses the block.
  virtual ErrorCode free(int device, void* block, StreamHandle stream) noexcept = 0;
  /// Host memory that copies to and from a device run beside other work with.
  virtual ErrorCode allocate_pinned(std::size_t bytes, void*& block) noexcept = 0;
  virtual ErrorCode free_pinned(void* block) noexcept = 0;

  /// The host's end is pinned memory.
  virtual ErrorCode copy(int device, void* to, const void* from, std::size_t bytes, CopyKind kind,
                         StreamHandle stream) noexcept = 0;
  virtual ErrorCode copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                              StreamHandle stream) noexcept = 0;
  virtual ErrorCode fill(int device, void* to, int byte, std::size_t bytes, StreamHandle stream) noexcept = 0;
  /// `arguments` are copied before this returns.
  virtual ErrorCode launch(int device, const KernelFunction& function, GridShape shape, const void* arguments,
                           std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
  /// Calls `function(data)` on a thread of the driver's when the work before it is done; never after an error. It calls
  /// nothing of the driver.
  virtual ErrorCode call_host(int device, StreamHandle stream, void (*function)(void* data), void* data) noexcept = 0;

  /// Work that this thread issues to the stream from now on is noted in a graph instead of being run. It is work of
  /// that stream alone: kernels, fills, copies inside the device, calls of libraries.
  virtual ErrorCode begin_capture(int device, StreamHandle stream) noexcept = 0;
  /// Ends it, ready to be launched; none, and an error, if something was issued that a graph cannot have. If `graph`
  /// is null, the issued work is forgotten.
  virtual ErrorCode end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept = 0;
  /// Issues all of it in order. The blocks that it uses are where they were when it was captured.
  virtual ErrorCode launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept = 0;
  /// No launch of it runs any more.
  virtual ErrorCode destroy_graph(int device, GraphHandle graph) noexcept = 0;

  /// The library of products that computes on this driver's devices; lives as long as the driver.
  virtual Products& products() noexcept = 0;
  /// The library that sorts on this driver's devices; lives as long as the driver.
  virtual Sorts& sorts() noexcept = 0;
  /// The library that decomposes matrices on this driver's devices; lives as long as the driver.
  virtual Solvers& solvers() noexcept = 0;
  /// The library of Fourier transforms on this driver's devices; lives as long as the driver.
  virtual Transforms& transforms() noexcept = 0;
  /// The library of convolutions on this driver's devices; lives as long as the driver. Null if there is none.
  virtual Convolutions* convolutions() noexcept = 0;
  /// Makes kernels at run time for this driver's devices; lives as long as the driver. Null if there is none.
  virtual Programs* programs() noexcept = 0;
  /// The library that computes between this driver's devices; lives as long as the driver. Null if there is none.
  virtual Collectives* collectives() noexcept = 0;
};

/// CUDA's runtime: every caller gets the same object. In the library's component `cuda`.
std::shared_ptr<Driver> cuda_driver();

}  // namespace dflow::cuda
