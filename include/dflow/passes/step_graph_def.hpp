#pragma once

#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/step_graph.hpp>

#include <cstdint>

namespace dflow {

/// The part as data, names as passes have made them. What its nodes call goes with it as functions, which take all that
/// they read as arguments.
///
/// Errors: InvalidArgument for a part with feeds or fetches: what one for another task reads and gives it receives and
/// sends.
StepGraphDef to_step_graph_def(const StepGraph& part);

/// What such data says, on the device at position `placed_on`. `graph` is the data's `graph`, imported as part of a
/// step.
///
/// Errors: InvalidArgument for targets that it does not have; those of `attach_bodies`.
StepGraph part_of_step(const GraphStore& graph, const StepGraphDef& def, std::int32_t placed_on);

}  // namespace dflow
