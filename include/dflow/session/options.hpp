#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/passes/options.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/op_set.hpp>
#include <dflow/runtime/step_stats.hpp>
#include <dflow/session/step_cache_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace dflow {

class Allocator;
class Clock;
class Device;
class SessionTarget;
class ThreadPool;

/// What a session is made with. Whatever is left null the session makes for itself; nothing is shared between sessions
/// that was not given to both.
struct SessionOptions {
  /// The ops that the graph may hold, with kernels for the default devices, and tables for other types of devices.
  OpSet ops = standard_ops;
  /// Threads of the session's own pool; 0 takes all cores that the process may use (`available_cores`). Ignored where
  /// `pool` or `devices` are given.
  int num_threads = 0;
  /// Runs the units of steps; null: the session's own, or the widest of its `devices`'.
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// The devices that it makes itself, `make_default_devices`: "/cpu:0" to "/cpu:n-1", all on the session's pool.
  int num_cpu_devices = 1;
  /// Devices with their variables, in order of preference: give the same to two sessions and they share state. They
  /// have their own pools, allocators and settings: together with `num_cpu_devices`, `allocator`, `memory_limit_bytes`,
  /// `draw_seed` or `reproducible` they are InvalidArgument. `cpu_devices` (`runtime/cpu_device.hpp`) makes the host's
  /// processors with settings of their own.
  std::vector<std::shared_ptr<Device>> devices = {};
  /// A cluster that the session runs on (`net::Server::target()`): its devices are those of this process that belong to
  /// the cluster, in front, and those of all other tasks. With it the session makes none, so whatever says what they
  /// are like is InvalidArgument. Finding the other tasks is part of making the session, which throws Unavailable with
  /// the list of those that are missing.
  std::shared_ptr<SessionTarget> target = nullptr;
  std::shared_ptr<Allocator> allocator = nullptr;
  /// Tensors of the session take at most so many bytes at once; 0 for no limit. Beyond it: ResourceExhausted.
  std::size_t memory_limit_bytes = 0;
  PassOptions passes = {};
  InterOp inter_op = InterOp::automatic;
  /// The same bits for the same seed, whatever the number of threads.
  bool reproducible = false;
  /// A node whose device does not exist, or has no kernel for it, goes to one that can run it.
  bool soft_placement = false;
  std::shared_ptr<Clock> clock = nullptr;
  /// Where the callbacks of `run_async` run; null: on threads of the session's own, so that a callback may block.
  std::shared_ptr<ThreadPool> callbacks = nullptr;
  /// Told what leaves a callback of `run_async` as an exception; null: a line on standard error.
  std::function<void(const Status&)> on_callback_error = nullptr;
  /// How much of what was compiled is kept.
  StepCacheOptions step_cache = {};
  /// Tells this session's steps from those of others on the same devices; 0 draws a number.
  std::uint64_t incarnation = 0;
  /// Seeds of the random ops that were given none, called from any thread; null: the operating system's.
  std::function<std::uint64_t()> draw_seed = nullptr;
};

struct RunOptions {
  /// Time from now after which the step is cancelled with DeadlineExceeded; compiling it counts. What is not positive
  /// has passed already.
  std::optional<Duration> deadline = {};
  /// Fill `RunMetadata::stats`; without metadata it is InvalidArgument. An asynchronous run needs it until it is done.
  bool trace = false;
  /// Cancels the step when stop is requested.
  std::stop_token stop = {};
};

/// What a step tells of itself. A call that is given one empties it first.
struct RunMetadata {
  StepStats stats;
};

}  // namespace dflow
