#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <span>

namespace dflow {

/// Whether what a node calls, or what that calls, is placed on other devices than the node. Constants are everywhere.
bool spans_devices(const StepGraph& graph, const StepNode& node);

/// Splits each call that spans devices, and the calls in its bodies, into one call a device, whose bodies have the
/// nodes of that device and what it takes to send and receive what they read of one another.
///
/// The part on the call's own device has the results, a loop's variables, and its condition, of which it tells the
/// others in each iteration. The other parts get what their nodes read of what is around the call once, as inputs, and
/// give what is kept of their nodes. What waits for the call waits for all parts, and so does what reads its results,
/// if a part changes state; a part that does begins when all inputs of the call are there. A loop's first part goes on
/// to the next iteration when the others have ended the last one, or sent it something in it.
///
/// The same is done with a call on a device that has a memory of its own, whose bodies may have tensors in host memory,
/// and with one that captures handles of other devices, of which it loses those that nothing reads.
///
/// Precondition: a topological order; every node's `placed_on` is a position among `devices`; `kernels` are theirs.
/// Errors: Unimplemented, naming it, for a node of raw control flow whose nodes are on several devices, and for a loop
/// on several whose condition or body calls itself.
StepGraph split_calls(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels);

}  // namespace dflow
