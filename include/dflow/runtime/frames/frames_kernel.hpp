#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <memory>

namespace dflow {

struct PlanOptions;

/// The kernel of a node that stands for a part of the graph with Switches, Merges and frames, which is `body`. It is
/// the second, general and simple loop, and counts the inputs that each node of each iteration still waits for. It is
/// asynchronous. Its nodes run in the thread that starts it, and side by side in the pool if they are worth it.
///
/// Errors: the errors of `Plan::compile` and of `lay_out_frames`; InvalidArgument for fetches inside of a frame.
std::unique_ptr<AnyKernel> make_frames_kernel(const StepGraph& body, const PlanOptions& options);

}  // namespace dflow
