#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

namespace dflow {

/// A device as passes and peers know it: a value. A device of another process is described by one and needs no object
/// here.
///
/// Thread safety: a value type.
struct DeviceInfo {
  std::string name;  ///< full: "/job:localhost/replica:0/task:0/device:CPU:0"
  std::string type;  ///< "CPU", "GPU"
  /// Different after each start of the process that owns the device. It is part of rendezvous keys, so a tensor of a
  /// lost device is never taken for a tensor of its successor.
  std::uint64_t incarnation = 0;
  /// Names the memory of its tensors among the memories of its task: empty for the host's.
  std::string memory;
  /// Other facts from its owner: "threads", and "memory_limit_bytes" if there is a limit.
  std::map<std::string, std::string> attributes;

  bool uses_host_memory() const noexcept { return memory.empty(); }

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

/// One memory of one task. Between two places in one memory a tensor goes as a handle, else it is copied.
///
/// Thread safety: a value type.
struct MemoryId {
  std::string task;  ///< "/job:localhost/replica:0/task:0"
  std::string name;  ///< empty for the task's host memory

  friend auto operator<=>(const MemoryId&, const MemoryId&) = default;
};

/// The memory that the device computes in. Errors: InvalidArgument if its name cannot be read.
MemoryId memory_of(const DeviceInfo& device);
/// The host memory beside it: the same for a device that computes there.
MemoryId host_memory_of(const DeviceInfo& device);

}  // namespace dflow
