#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace dflow {

class Plan;

namespace detail {

/// The plan of a body, and runs of it that can be used again: one for all kernels of a plan that call the body. It is
/// made before the plan is, which may call itself.
class CalledPlan;
std::shared_ptr<CalledPlan> make_called_plan();
/// Once.
void set_plan(CalledPlan& of, std::shared_ptr<const Plan> plan);

}  // namespace detail

/// The kernel of a node that calls functions, whose bodies have plans of its device. Where all of them run in one
/// thread it does so in its caller's, else it is asynchronous and their units are the step's. A body whose plan is
/// still being compiled is one that the node stands in.
///
/// A loop runs its iterations one after the other; it sees that its step was cancelled before each of them. A call
/// inside of `max_call_depth` others ends with ResourceExhausted.
std::unique_ptr<AnyKernel> make_call_kernel(OpRole role, const StepCall& call,
                                            std::vector<std::shared_ptr<detail::CalledPlan>> bodies);

/// Calls around a call, those of branches, loops and functions alike.
inline constexpr std::int32_t max_call_depth = 4096;

}  // namespace dflow
