#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/base/lifetime.hpp>
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
class FileSystem;
class SessionTarget;
class ThreadPool;

/// The options of a session. The session makes for itself all objects that are left null. Two sessions share only the
/// objects that were given to both.
struct SessionOptions {
  /// The ops that the graph may hold, with kernels for the default devices, and tables for other types of devices.
  OpSet ops = standard_ops;
  /// Threads of the session's own pool; 0 takes all cores that the process may use (`available_cores`). Ignored if
  /// `pool` or `devices` are given.
  int num_threads = 0;
  /// Runs the units of steps; null: the session's own, or the widest of its `devices`'.
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// Number of devices that the session makes, by `make_default_devices`: "/cpu:0" to "/cpu:n-1", all on the session's
  /// pool.
  int num_cpu_devices = 1;
  /// Devices with their variables, in order of preference. Two sessions that are given the same devices share state.
  /// Devices have their own pools, allocators and settings: together with `num_cpu_devices`, `allocator`,
  /// `memory_limit_bytes`, `draw_seed`, `files` or `reproducible` they are InvalidArgument. `cpu_devices`
  /// (`runtime/cpu_device.hpp`) makes the host's processors with settings of their own.
  std::vector<std::shared_ptr<Device>> devices = {};
  /// A cluster that the session runs on (`net::Server::target()`). Its devices are the devices of this process that
  /// belong to the cluster, in front, and the devices of all other tasks. The session makes no devices then, so the
  /// options that describe them are InvalidArgument. Finding the other tasks is part of making the session, which
  /// throws Unavailable with a list of the missing tasks.
  std::shared_ptr<SessionTarget> target = nullptr;
  /// How long to look for the other tasks of the target, if that is less than the target's own time
  /// (`net::ServerOptions::startup_timeout`).
  std::optional<Duration> startup_timeout = {};
  /// Ends the search with Cancelled when stop is requested. Steps have a stop token of their own.
  std::stop_token stop = {};
  std::shared_ptr<Allocator> allocator = nullptr;
  /// Most bytes that tensors of the session take at once; 0 for no limit. Beyond it: ResourceExhausted.
  std::size_t memory_limit_bytes = 0;
  PassOptions passes = {};
  InterOp inter_op = InterOp::automatic;
  /// Gives the same bits for the same seed, whatever the number of threads.
  bool reproducible = false;
  /// If a node's device does not exist, or has no kernel for the node, the node goes to a device that can run it.
  bool soft_placement = false;
  std::shared_ptr<Clock> clock = nullptr;
  /// Runs the callbacks of `run_async`; null: threads of the session's own, so that a callback may block.
  std::shared_ptr<ThreadPool> callbacks = nullptr;
  /// Told of exceptions from callbacks of `run_async`; null: a line on standard error.
  std::function<void(const Status&)> on_callback_error = nullptr;
  /// How many compiled steps are kept.
  StepCacheOptions step_cache = {};
  /// Tells this session's steps from steps of other sessions on the same devices; 0 draws a number.
  std::uint64_t incarnation = 0;
  /// Draws seeds for random ops without one; called from any thread; null: the operating system's.
  std::function<std::uint64_t()> draw_seed = nullptr;
  /// The files that ops read and write, for example `FileSystems`; null: the machine's. The session keeps them alive.
  std::shared_ptr<FileSystem> files = nullptr;
};

struct RunOptions {
  /// Time from now after which the step is cancelled with DeadlineExceeded; compiling it counts. A duration that is
  /// not positive has passed already.
  std::optional<Duration> deadline = {};
  /// Fills `RunMetadata::stats`. Without metadata it is InvalidArgument.
  bool trace = false;
  /// Cancels the step when stop is requested.
  std::stop_token stop = {};
};

/// The facts that a step reports of itself. A call that is given a RunMetadata empties it first. If it is destroyed
/// before an asynchronous run or a partial run has ended, the run reports nothing.
struct RunMetadata {
  StepStats stats = {};
  Lifetime lifetime = {};  ///< tells runs under way that this object is gone
};

namespace detail {
inline Reference<RunMetadata> reference_to(RunMetadata* metadata) {
  return metadata == nullptr ? Reference<RunMetadata>() : Reference<RunMetadata>(*metadata, metadata->lifetime);
}
}  // namespace detail

}  // namespace dflow
