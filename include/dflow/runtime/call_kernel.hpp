#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace dflow {

class Plan;

namespace detail {

/// The plan of a body, and runs of it that can be used again: one object for all kernels of a plan that call the
/// body. The object is made before the plan, because a plan may call itself.
class CalledPlan;
std::shared_ptr<CalledPlan> make_called_plan();
/// Sets the plan. Called once.
void set_plan(CalledPlan& of, std::shared_ptr<const Plan> plan);

}  // namespace detail

/// The kernel of a node that calls functions; their bodies have plans of its device. If all plans run in one thread,
/// the kernel runs them in its caller's thread. Else it is asynchronous and their units are the step's. A body whose
/// plan is still being compiled is a body that the node stands in.
///
/// A loop runs its iterations one after the other; before each iteration it checks whether its step was cancelled. A
/// call inside of `max_call_depth` others ends with ResourceExhausted.
std::unique_ptr<AnyKernel> make_call_kernel(OpRole role, const StepCall& call,
                                            std::vector<std::shared_ptr<detail::CalledPlan>> bodies);

/// Most calls around a call: calls of branches, loops and functions alike.
inline constexpr std::int32_t max_call_depth = 4096;

}  // namespace dflow
