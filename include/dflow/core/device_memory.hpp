#pragma once

/// Public: a memory that the host does not address, and copies across its border.

#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/any_tensor.hpp>

namespace dflow {

/// A memory that the host does not address, and the ways across its border. Where a pointer to one is null, host memory
/// is meant.
///
/// Copies are ordered after the work on their source that was issued before: a device that computes asynchronously
/// needs nobody to wait for it. A tensor given to a copy is kept until the copy has ended.
///
/// Thread safety: all functions may be called from any thread. They do not block; `done` is called exactly once, on any
/// thread, and must be short.
/// Errors, given to `done`: ResourceExhausted where the destination is full; what the device reports.
class DeviceMemory {
 public:
  using CopyDone = UniqueFunction<void(Status status, AnyTensor copy)>;

  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory();

  virtual Allocator& allocator() = 0;
  /// A tensor of host memory, brought here.
  virtual void copy_in_async(const AnyTensor& host, CopyDone done) = 0;
  /// A tensor of this memory, brought to host memory of `allocator`.
  virtual void copy_out_async(const AnyTensor& here, Allocator& allocator, CopyDone done) = 0;
  /// A tensor of this memory, brought to another one that is not the host's; by way of the host unless overridden.
  virtual void copy_to_async(const AnyTensor& here, DeviceMemory& there, Allocator& host, CopyDone done);
};

/// Brings a tensor from one memory to another (null: host memory). Inside one memory it is the same tensor, and `done`
/// is called before this returns. `host` serves what goes to, or by way of, host memory.
void copy_across_async(const AnyTensor& tensor, DeviceMemory* from, DeviceMemory* to, Allocator& host,
                       DeviceMemory::CopyDone done);

}  // namespace dflow
