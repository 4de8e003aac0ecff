#pragma once

/// Public: a memory that the host does not address, and copies to and from it.

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/any_tensor.hpp>

namespace dflow {

/// A memory that the host does not address, and copies to and from it. A null pointer to a DeviceMemory stands for host
/// memory.
///
/// A copy runs after all work on its source that was issued before: callers need not wait for a device that computes
/// asynchronously. A copy keeps its source tensor until it has ended.
///
/// Thread safety: all functions may be called from any thread. They do not block; `done` is called exactly once, on any
/// thread, and must be short.
/// Errors, given to `done`: ResourceExhausted if the destination is full; the errors of the device.
class DeviceMemory {
 public:
  using CopyDone = UniqueFunction<void(Status status, AnyTensor copy)>;

  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory();

  virtual Allocator& allocator() = 0;
  /// Copies a tensor of host memory to this memory.
  virtual void copy_in_async(const AnyTensor& host, CopyDone done) = 0;
  /// Copies a tensor of this memory to host memory of `allocator`.
  virtual void copy_out_async(const AnyTensor& here, Allocator& allocator, CopyDone done) = 0;
  /// Copies a tensor of this memory to another device memory; by way of the host unless overridden.
  virtual void copy_to_async(const AnyTensor& here, DeviceMemory& there, Allocator& host, CopyDone done);
};

/// Copies a tensor from one memory to another (null: host memory). Inside one memory `done` gets the same tensor and is
/// called before this returns. `host` allocates the copies in host memory, also copies on the way between two devices.
void copy_across_async(const AnyTensor& tensor, DeviceMemory* from, DeviceMemory* to, Allocator& host,
                       DeviceMemory::CopyDone done);

}  // namespace dflow
