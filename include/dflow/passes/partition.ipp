#pragma once

#include <dflow/passes/partition.hpp>

#include <utility>

namespace dflow {

DFLOW_INLINE std::vector<Partition> partition(StepGraph graph, std::span<const std::shared_ptr<Device>>) {
  Partition whole;
  for (std::size_t i = 0; i < graph.feeds.size(); ++i) whole.feeds.push_back(i);
  for (std::size_t i = 0; i < graph.fetches.size(); ++i) whole.fetches.push_back(i);
  whole.graph = std::move(graph);
  std::vector<Partition> parts;
  parts.push_back(std::move(whole));
  return parts;
}

}  // namespace dflow
