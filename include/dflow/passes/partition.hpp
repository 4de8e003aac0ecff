#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/device.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dflow {

/// The part of a placed step graph that one device runs.
struct Partition {
  std::size_t device = 0;             ///< position among the devices
  StepGraph graph;
  std::vector<std::size_t> feeds;     ///< for each feed of `graph`, its position among the whole step's feeds
  std::vector<std::size_t> fetches;   ///< for each fetch of `graph`, its position among the whole step's fetches
};

/// Splits a placed graph by device. Each edge that crosses becomes one Send and one Recv per (tensor, destination device), a
/// control edge that crosses a Send and Recv of an empty tensor. A graph on one device comes back whole.
///
/// Precondition: `place` has run.
std::vector<Partition> partition(StepGraph graph, std::span<const std::shared_ptr<Device>> devices);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/partition.ipp>
#endif
