#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/passes/options.hpp>
#include <dflow/runtime/device.hpp>

namespace dflow {

/// Replaces nodes whose inputs are all constants by their value, if that is no larger than `max_bytes`. Stateful ops, fed
/// edges and nodes with control inputs stay.
StepGraph fold_constants(StepGraph graph, const OpTable& ops, const Device& host, std::size_t max_bytes = 10 << 20);

/// Merges nodes that compute the same: equal op, element types, attributes, inputs and control inputs, device constraint.
/// Stateful ops and targets stay.
StepGraph merge_common_subexpressions(StepGraph graph);

/// Runs the passes that `options` switches on, each followed by dropping what it left without a reader.
StepGraph optimize(StepGraph graph, const PassOptions& options, const OpTable& ops, const Device& host);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/passes/optimize.ipp>
#endif
