#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/base/spread_bits.hpp>
#include <dflow/passes/compile_step.hpp>
#include <dflow/passes/fusion/chains.hpp>
#include <dflow/passes/fusion/fuse.hpp>
#include <dflow/passes/place.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/session/part_compiler.hpp>
#include <dflow/session/session.hpp>
#include <dflow/session/step_cache.hpp>
#include <dflow/session/target.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {
/// Clears the result of an earlier run. Throws InvalidArgument if a trace is asked for without metadata to hold it.
void begin_metadata(const RunOptions& run_options, RunMetadata* metadata);
/// Gives `done` an error of a call without a session; an exception of `done` becomes a line of the log.
void refuse(AnyDone done, Status error) noexcept;
}  // namespace detail

/// What a Session and the objects that it makes hold. The graph ends with the last of these objects, in the thread that
/// destroys it, and not with a run in some thread of a pool.
struct Session::Owner {
  std::shared_ptr<const GraphStore> graph;
  std::shared_ptr<State> state;
};

/// The members of a Session. Prepared steps and runs under way hold the state too.
///
/// Thread safety: all functions may be called from several threads at once.
struct Session::State : std::enable_shared_from_this<Session::State> {
  State(const GraphStore& session_graph, SessionOptions session_options);

  /// Kept by sessions, prepared steps and partial runs (`Session::Owner`). Runs under way do not look at it.
  const GraphStore* const graph;
  SessionOptions options;
  std::vector<std::shared_ptr<Device>> devices;   ///< of this process
  std::unique_ptr<RemoteTasks> remote;            ///< null without a target
  std::unique_ptr<RemoteSession> remote_session;  ///< null unless a master in another process keeps the session
  DeviceInfo client;
  ThreadPool* pool = nullptr;            ///< runs the units of steps
  Allocator* host_allocator = nullptr;   ///< of fetches that come from other memories
  std::unique_ptr<Placement> placement;  ///< null if another process is the master
  std::vector<KernelTables> kernels;     ///< by device, devices of this process first
  Fusions fusions;                       ///< of `kernels`
  Chains chains;                         ///< the same
  std::unique_ptr<PartCompiler> compiler;
  StepCache cache;
  SparePruneScratch scratch;
  mutable std::mutex log_mutex;
  std::shared_ptr<const StepGraph> last_placed;  ///< the nodes of the step compiled last; null with one device
  std::atomic<std::uint64_t> next_step{0};

  StepLimits limits_of(const RunOptions& run_options) const;
  /// Differs from the ids of other clients of the same devices.
  std::uint64_t new_step_id() noexcept {
    return spread_bits(options.incarnation + (next_step.fetch_add(1, std::memory_order_relaxed) + 1) * spread_step);
  }

  /// From the cache, or compiled here and now, without a lock: other steps go on meanwhile. A step that streams is for
  /// partial runs alone, and other steps are not for them.
  std::shared_ptr<CompiledStep> compile(const FedEdges& fed, std::span<const AnyOutput> edges,
                                        std::span<const Operation> targets, const StepLimits& limits,
                                        bool streams = false);
  std::shared_ptr<StepHandle> make_handle(const CompiledStep& step, const StepLimits& limits, bool trace);
  void run(CompiledStep& step, const StepLimits& limits, const RunOptions& run_options, RunMetadata* metadata,
           const FedTensors& fed, std::span<AnyTensor> results);
  void run_async(const RunOptions& run_options, RunMetadata* metadata, std::span<const Feed> feed_list,
                 std::span<const AnyOutput> edges, std::span<const Operation> targets, AnyDone done);
  /// Runs a step that is compiled already.
  void run_async(std::shared_ptr<CompiledStep> step, const RunOptions& run_options, RunMetadata* metadata,
                 std::vector<AnyTensor> feeds, std::size_t num_results, AnyDone done);
  /// Runs nothing, and delivers an error.
  void refuse_async(const Status& why, AnyDone done);

  /// A step has ended so, as its caller sees it.
  void note_end(const Status& status) const noexcept {
    if (options.target != nullptr) options.target->note_step(status.code());
  }
  /// Reports an exception that a callback has thrown.
  void report(const Status& thrown) noexcept;

 private:
  struct AsyncRun;

  /// An exception of `step_of` is delivered like an error in the step.
  void start_async(const RunOptions& run_options, RunMetadata* metadata, const FedTensors& fed, std::size_t num_results,
                   AnyDone done, FunctionRef<std::shared_ptr<CompiledStep>(const StepLimits&)> step_of);

  void make_devices();
  void take_target();
  /// Throws unless all names of a device agree, and the session makes no settings for devices of others.
  void check_devices(std::span<const DeviceInfo> infos) const;
  void choose_pool();
  /// Throws unless `of` belongs to the session's graph. `i` is its number among the feeds, fetches or targets, as
  /// `what` says.
  void check_belongs(const Operation& of, std::string_view what, std::size_t i) const;
  void check_edge(const AnyOutput& edge, std::string_view what, std::size_t i) const;
  /// Throws DeadlineExceeded or Cancelled if the run is to end.
  void check_limits(const StepLimits& limits) const;
  std::string signature_of(const FedEdges& fed, std::span<const AnyOutput> edges,
                           std::span<const Operation> targets) const;
  /// Errors: InvalidArgument for a target in the body of a function.
  StepRequest request_of(const FedEdges& fed, std::span<const AnyOutput> edges, std::span<const Operation> targets,
                         bool streams) const;
  /// A step without parts. Errors: InvalidArgument for an edge of another graph, and for an edge that carries a
  /// handle.
  std::shared_ptr<CompiledStep> describe_step(const FedEdges& fed, std::span<const AnyOutput> edges) const;
  void add_parts(CompiledStep& step, std::vector<Partition> parts, const StepLimits& limits,
                 FunctionRef<void()>* check);
  /// Updates `last_placed`.
  void note_placed(const StepGraph& step);
  std::shared_ptr<CompiledStep> make_step(const FedEdges& fed, std::span<const AnyOutput> edges,
                                          std::span<const Operation> targets, const StepLimits& limits, bool streams);
  std::shared_ptr<CompiledStep> make_remote_step(const FedEdges& fed, std::span<const AnyOutput> edges,
                                                 std::span<const Operation> targets, bool streams);
  static Status run_plain(CompiledStep& step, CompiledStep::Memory& memory, std::uint64_t id);
  static void deliver(std::shared_ptr<AsyncRun> run) noexcept;
};

}  // namespace dflow
