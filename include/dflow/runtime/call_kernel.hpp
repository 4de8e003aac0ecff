#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/kernel.hpp>

#include <memory>
#include <vector>

namespace dflow {

class Plan;

/// The kernel of a node that calls functions, whose bodies are these plans of its device. Where all of them run in one
/// thread it does so in its caller's, else it is asynchronous and their units are the step's.
///
/// A loop runs its iterations one after the other; it sees that its step was cancelled before each of them.
std::unique_ptr<AnyKernel> make_call_kernel(OpRole role, const StepCall& call,
                                            std::vector<std::shared_ptr<const Plan>> bodies);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/step.hpp>  // whose end brings the bodies: they need a complete Step
#endif
