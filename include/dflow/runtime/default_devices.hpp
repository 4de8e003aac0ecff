#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dflow {

class Allocator;
class Device;
class FileSystem;
class ThreadPool;

struct DefaultDeviceOptions {
  int count = 1;
  std::string task = "/job:localhost/replica:0/task:0";  ///< that they belong to
  std::uint64_t incarnation = 0;
  std::shared_ptr<ThreadPool> pool = nullptr;          ///< of all of them
  std::shared_ptr<Allocator> allocator = nullptr;      ///< the same
  bool reproducible = false;                           ///< the same bits whatever the number of threads
  std::function<std::uint64_t()> draw_seed = nullptr;  ///< null: `system_seed`
  std::shared_ptr<FileSystem> files = nullptr;         ///< of the kernels; null: the machine's
};

/// The devices of a session that was given none: the host's processors, "/cpu:0" to "/cpu:n-1" of
/// `task`. Their kernels come with a list of ops unasked (`default_kernels`).
std::vector<std::shared_ptr<Device>> make_default_devices(const DefaultDeviceOptions& options);

}  // namespace dflow
