#pragma once

#include <dflow/passes/check_receives.hpp>
#include <dflow/passes/compile_step.hpp>
#include <dflow/passes/functions.hpp>
#include <dflow/passes/optimize.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace dflow {

namespace detail {

/// Bodies have the constants around them by value (`captures_of`), and would not see a feed in their place.
inline void require_not_fed(NodeId id, const StepNode& node, std::span<const Endpoint> feeds) {
  if (node.op->role != OpRole::constant || feeds.empty()) return;
  if (std::none_of(feeds.begin(), feeds.end(), [&](Endpoint fed) { return fed.node == id; })) return;
  throw_error(Status::invalid_argument(str_cat("constant '", node->name,
                                               "' cannot be fed: the body of a function has its value. ",
                                               "Feed a placeholder, or let the body read an identity of the constant"))
                  .with_node(node.op->name, node->name)
                  .with_location(node->where));
}

inline BodyOptions body_options(const PassOptions& options, std::span<const DeviceInfo> devices) {
  BodyOptions bodies;
  bodies.lowers = options.lower_control_flow;
  bodies.raises.everywhere = options.raise_control_flow;
  for (const DeviceInfo& each : devices) {
    bodies.raises.on_devices.push_back(memory_of(each) != host_memory_of(each));
  }
  return bodies;
}

/// Prunes the graph to the step, and attaches the bodies that it calls. The graph is placed as a whole: here each node,
/// of the step and of bodies, is only asked where it is.
inline StepGraph prune_and_place(const GraphStore& graph, const StepRequest& request, const PassOptions& options,
                                 Placement& placement, PruneScratch& scratch, const StepObserver& observer) {
  placement.extend(graph);
  const Placement::Reader placed(placement);
  const auto place = [&](NodeId id, StepNode& node) {
    node.placed_on = static_cast<std::int32_t>(placed.device_of(id));
  };
  StepGraph step = prune(graph, request.feeds, request.fetches, request.targets, scratch, place);
  const auto place_in_body = [&](NodeId id, StepNode& node) {
    require_not_fed(id, node, request.feeds);
    place(id, node);
  };
  BodyOptions bodies = body_options(options, placement.devices());
  bodies.check = observer.check;
  attach_bodies(graph, step, scratch, place_in_body, bodies);
  return step;
}

/// Constants are folded on the first device of this process that computes in host memory.
inline PassContext pass_context(const StepRequest& request, const StepDevices& devices, const StepObserver& observer) {
  PassContext context;
  context.check = observer.check;
  context.fusions = &devices.fusions;
  context.chains = &devices.chains;
  context.feeds_come_apart = request.streams;
  for (std::size_t d = 0; d < devices.here.size() && context.host == nullptr; ++d) {
    const DeviceContext& device = *devices.here[d].context;
    if (device.memory != nullptr || device.is_asynchronous) continue;
    context.host = &device;
    context.kernels = &devices.kernels[d];
  }
  return context;
}

}  // namespace detail

DealtStep compile_step(const GraphStore& graph, const StepRequest& request, const PassOptions& options,
                       const StepDevices& devices, SparePruneScratch& scratch, const StepObserver& observer) {
  DealtStep dealt;
  std::unique_ptr<PruneScratch> room = scratch.take();
  const auto check = [&] {
    if (observer.check != nullptr) (*observer.check)();
  };
  StepGraph step = detail::prune_and_place(graph, request, options, devices.placement, *room, observer);
  check();
  expand_collectives(step, devices.placement.devices(), devices.here);
  scratch.give_back(std::move(room));

  check_receives(step);
  if (request.streams) dealt.needed_feeds = needed_feeds(step);
  for (const StepNode& node : step.nodes) dealt.uses_rendezvous |= node.op->role == OpRole::send;

  check();
  step = optimize(std::move(step), options, detail::pass_context(request, devices, observer));

  check();
  if (observer.on_placed != nullptr) (*observer.on_placed)(step);
  dealt.partitions = partition(std::move(step), devices.placement.devices(), devices.kernels, devices.client);
  return dealt;
}

}  // namespace dflow
