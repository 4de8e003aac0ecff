#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <span>

namespace dflow {

/// Splits each call that spans devices, and the calls in its bodies, into one call for each device. The bodies of a
/// part have the nodes of its device, and Sends and Recvs for the tensors that they read of one another.
///
/// - The part on the call's own device has the results, a loop's variables, and the loop's condition. It tells the
///   other parts the condition in each iteration.
/// - The other parts get each edge around the call that their nodes read as an input, once. They give the values that
///   are kept of their nodes.
/// - A node that waits for the call waits for all parts. If a part changes state, a reader of the call's results also
///   waits for all parts, and a part that changes state begins when all inputs of the call are there.
/// - A loop's first part goes on to the next iteration when the others have ended the last one, or sent it a tensor
///   in it.
///
/// A call on a device with a memory of its own is split too: its bodies may have tensors in host memory. So is a call
/// that captures handles of other devices; it loses the handles that nothing reads.
///
/// Precondition: a topological order; every node's `placed_on` is a position among `devices`; `kernels` are theirs.
/// Errors: Unimplemented, naming it, for a node of raw control flow whose nodes are on several devices, and for a
/// loop on several devices whose condition or body calls itself.
StepGraph split_calls(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels);

}  // namespace dflow
