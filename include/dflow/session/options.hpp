#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/base/fwd.hpp>
#include <dflow/kernels/cpu/raw/options.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/passes/options.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace dflow {

class Allocator;
class Clock;
class Device;
class ThreadPool;

/// What a session is made with. Whatever is left null the session makes for itself; nothing is shared between sessions that
/// was not given to both.
struct SessionOptions {
  OpTable ops = standard_ops;
  /// Threads of the session's own pool; 0 takes all cores that the process may use (`available_cores`). Ignored where
  /// `pool` is given.
  int num_threads = 0;
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// "/cpu:0" to "/cpu:n-1", all on the session's pool. Ignored where `devices` are given.
  int num_cpu_devices = 1;
  /// Devices with their variables: give the same to two sessions and they share state.
  std::vector<std::shared_ptr<Device>> devices = {};
  std::shared_ptr<Allocator> allocator = nullptr;
  /// Tensors of the session take at most so many bytes at once; 0 for no limit. Beyond it: ResourceExhausted.
  std::size_t memory_limit_bytes = 0;
  PassOptions passes = {};
  InterOp inter_op = InterOp::automatic;
  /// The kernels' backend and instruction set.
  cpu::CpuOptions cpu = {};
  /// The same bits for the same seed, whatever the number of threads.
  bool reproducible = false;
  /// A node whose device does not exist, or has no kernel for it, goes to one that can run it.
  bool soft_placement = false;
  std::shared_ptr<Clock> clock = nullptr;
};

struct RunOptions {
  /// Time from now after which the step is cancelled with DeadlineExceeded.
  std::optional<Duration> deadline = {};
  /// Fill `RunMetadata::stats`.
  bool trace = false;
  /// Cancels the step when stop is requested.
  std::stop_token stop = {};
};

struct RunMetadata {
  StepStats stats;
};

}  // namespace dflow
