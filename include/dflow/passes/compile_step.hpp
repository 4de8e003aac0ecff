#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/passes/expand_collectives.hpp>
#include <dflow/passes/fusion/chains.hpp>
#include <dflow/passes/fusion/fuse.hpp>
#include <dflow/passes/options.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/place.hpp>
#include <dflow/passes/prune.hpp>

#include <span>
#include <vector>

namespace dflow {

/// The request for a step: the edges it is fed, the edges it gives, and the nodes it runs.
struct StepRequest {
  std::vector<Endpoint> feeds;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  bool streams = false;  ///< for a partial run: a feed may wait for a result of another
};

/// The devices that a step may use, with their abilities.
///
/// Thread safety: a view.
struct StepDevices {
  Placement& placement;                    ///< of the graph's nodes on all devices
  std::span<const KernelTables> kernels;   ///< by device
  std::span<const CollectiveDevice> here;  ///< the first of the devices, which are in this process
  const DeviceInfo& client;                ///< gives feeds and takes fetches
  const Fusions& fusions;                  ///< pairs that the devices do in one
  const Chains& chains;                    ///< which devices run chains of elementwise nodes as one
};

/// Functions that are called while a compilation goes on; or null.
struct StepObserver {
  FunctionRef<void()>* check = nullptr;                      ///< called now and then; throws to give up (a deadline)
  FunctionRef<void(const StepGraph&)>* on_placed = nullptr;  ///< shown the optimised step before it is partitioned
};

/// A step that is dealt out to devices, ready for `Plan::compile`.
struct DealtStep {
  Partitions partitions;
  /// If it streams: for each fetch, which feeds must be there before it can be made.
  std::vector<std::vector<bool>> needed_feeds;
  bool uses_rendezvous = false;  ///< the graph itself holds Sends
};

/// Takes a step from the graph to the parts of its devices. The order of all stages is here; docs/architecture.md, "The
/// stages of a step", has the rules of each.
///
/// Thread safety: safe; the graph may grow meanwhile.
/// Errors: as the stages; InvalidArgument for a fed constant that the body of a function reads.
DealtStep compile_step(const GraphStore& graph, const StepRequest& request, const PassOptions& options,
                       const StepDevices& devices, SparePruneScratch& scratch, const StepObserver& observer = {});

}  // namespace dflow
