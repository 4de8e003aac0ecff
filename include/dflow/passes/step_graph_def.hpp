#pragma once

#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/step_graph.hpp>

#include <cstdint>

namespace dflow {

/// The part as data, with the names that passes have made. The bodies that its nodes call go with it as functions.
/// The functions take every edge that they read as an argument.
///
/// Errors: InvalidArgument for a part with feeds or fetches: a part for another task receives and sends its tensors
/// instead.
StepGraphDef to_step_graph_def(const StepGraph& part);

/// The part that the data describes, on the device at position `placed_on`. `graph` is the data's `graph`, imported
/// as part of a step.
///
/// Errors: InvalidArgument for targets that the graph does not have; the errors of `attach_bodies`.
StepGraph part_of_step(const GraphStore& graph, const StepGraphDef& def, std::int32_t placed_on);

}  // namespace dflow
