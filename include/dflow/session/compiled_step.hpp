#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/runtime/step_handle.hpp>
#include <dflow/session/fed.hpp>
#include <dflow/session/target.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace dflow {

/// The compiled form of a step's signature (feeds, fetches, targets): one plan for each device that takes part, and
/// the client's sends, receives and known values.
///
/// Thread safety: safe; runs take their memory from a pool of idle steps.
class CompiledStep {
 public:
  struct Part {
    std::shared_ptr<Device> device;
    std::shared_ptr<const Plan> plan;
    std::vector<std::size_t> feeds;    ///< for each feed of the plan, the number of the step's feed
    std::vector<std::size_t> fetches;  ///< for each fetch of the plan, the number of the step's fetch
  };
  /// The memory of one run: a Step per part, and the queue that their units go through.
  struct Memory {
    std::vector<std::shared_ptr<Step>> steps;
    std::shared_ptr<UnitQueue> queue;
  };

  /// An edge that is fed, and the tensors that may be put on it.
  struct FedEdge {
    const Node* node = nullptr;
    std::int32_t index = 0;
    OutputInfo info;

    std::string name() const { return index == 0 ? node->name : str_cat(node->name, ':', index); }
  };
  std::vector<FedEdge> feeds;
  std::vector<const Node*> fetched;   ///< the node of each fetch
  std::shared_ptr<const void> graph;  ///< keeps the nodes of `feeds` and `fetched`
  /// Runs the units of all parts, regardless of the pools of their devices.
  ThreadPool* pool = nullptr;
  std::vector<Part> parts;                           ///< of this process
  std::vector<std::shared_ptr<RemoteShare>> shares;  ///< of other tasks
  std::shared_ptr<RemoteStep> remote;                ///< all of the step, if a master in another process runs it
  std::size_t num_remote_nodes = 0;
  bool streams = false;  ///< for a partial run: feeds come while it runs
  /// If it streams: the feeds that must be there before each fetch can be made.
  std::vector<std::vector<bool>> needed_feeds;
  bool uses_rendezvous = false;  ///< the graph itself holds Sends
  std::vector<ClientEdge> sends;
  std::vector<ClientEdge> receives;
  std::vector<ClientFetch> known;

  /// One synchronous plan in the calling thread, without feeds or fetches that cross into another memory.
  bool is_plain() const noexcept { return is_plain_; }
  /// To be called when all members are set.
  void settle() noexcept;
  std::size_t num_nodes() const noexcept;

  /// An error of a run, with the known facts of nodes that run in other tasks.
  Status explain(Status status) const;

  std::unique_ptr<Memory> take_memory();
  void give_back(std::unique_ptr<Memory> memory, bool has_failed) noexcept;
  /// Frees the memory of runs that are not under way.
  void release_idle_memory();

  /// Throws InvalidArgument unless the tensors have the element types and fit the shapes of the fed edges.
  void check_feeds(const FedTensors& tensors) const;
  void check_feed(std::size_t feed, const AnyTensor& tensor) const;
  /// The error for a fetch that is dead.
  Status dead_fetch(std::size_t fetch) const;
  /// Puts the feeds of parts in their slots, and fetched feeds among the results. A plain step takes the feeds that
  /// are the run's own.
  void feed(Memory& memory, const FedTensors& fed, std::span<AnyTensor> results) const;
  /// Sets up `handle`: its parts and the edges that cross the client's border.
  void fill(StepHandle& handle, Memory& memory, const FedTensors& fed, std::span<AnyTensor> results) const;
  /// Collects the fetches that are slots of plans, or known. The results belong to the caller: they share memory with
  /// nothing else.
  void collect(Memory& memory, std::span<AnyTensor> results) const;

 private:
  static constexpr std::size_t max_idle = 16;

  bool is_plain_ = false;
  std::mutex mutex_;
  std::array<std::unique_ptr<Memory>, max_idle> idle_;
  std::size_t num_idle_ = 0;
};

}  // namespace dflow
