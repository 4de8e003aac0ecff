#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/runtime/device.hpp>

#include <memory>
#include <span>
#include <string>

namespace dflow {

/// Decides a device for every node and writes its full name into `Node::device`: explicit and partial constraints, colocation
/// (groups of nodes that must be together), kernels that exist; free nodes go to the first device that can run them, cheap ones
/// to their producer's. Placeholders and constants go to their first consumer's device.
///
/// Errors: InvalidArgument if a constraint names no device of the session, if a group's constraints contradict each other, or
/// if no device that a node may go to has a kernel for it; with `soft_placement` such a node goes where it can run.
void place(StepGraph& graph, std::span<const std::shared_ptr<Device>> devices, const OpTable& ops, bool soft_placement);

/// "name: op -> device" per node, one a line.
std::string placement_text(const StepGraph& graph);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/place.ipp>
#endif
