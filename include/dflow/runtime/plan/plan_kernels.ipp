#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>
#include <dflow/runtime/call_kernel.hpp>
#include <dflow/runtime/frames/frames_kernel.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace dflow::detail {

/// Kernel of a constant that other nodes wait for. Its tensor is there from the beginning; the nodes before it are
/// not.
class AfterControlInputs final : public AnyKernel {
 public:
  AfterControlInputs() : AnyKernel(KernelTraits{}) {}
  void run(KernelContext&) const override {}
  double cost_ns() const noexcept override { return 0; }
};

void check_in(const PlanOptions& options, const StepGraph& graph, StepNodeId id) {
  const bool is_due = id.value() % 256 == 0 || graph.node(id).op == &op_def<ElementwiseChain>;  // compiled for long
  if (options.check != nullptr && is_due) (*options.check)();
}

NodeKernels PlanKernels::make_all() {
  const std::size_t num_nodes = graph_.nodes.size();
  NodeKernels all;
  all.kernels.resize(num_nodes);
  all.entries.resize(num_nodes);
  all.joinable.resize(num_nodes);
  all.cost_ns.resize(num_nodes);
  const auto run_as = [&](StepNodeId id, const AnyKernel& kernel) {
    all.kernels[id] = &kernel;
    all.carries_dead |= kernel.traits().makes_dead_outputs;
    all.nests |= kernel.traits().nests;
  };
  std::vector<OutputInfo> inputs;
  for (const StepNodeId id : graph_.nodes.indices()) {
    check_in(options_, graph_, id);
    const StepNode& node = graph_.node(id);
    if (node.is_fed_only) continue;
    if (node.op->role == OpRole::constant) {
      const std::span<const StepNodeId> controls = graph_.controls_of(node);
      const bool is_late =
          std::any_of(controls.begin(), controls.end(), [&](StepNodeId control) { return all.runs(control); });
      if (is_late) run_as(id, after_controls());
      continue;
    }
    if (node.op->role == OpRole::placeholder) {
      throw_error(Status::invalid_argument(str_cat("placeholder '", node->name, "' must be fed a ",
                                                   dtype_name(node->outputs[0].dtype), " tensor of shape ",
                                                   node->outputs[0].shape.to_string()))
                      .with_node(node.op->name, node->name)
                      .with_location(node->where));
    }
    if (calls_functions(node.op->role)) {
      const AnyKernel& kernel = make_call(node);
      run_as(id, kernel);
      all.cost_ns[id] = std::max(kernel.cost_ns(), 1.0);
      continue;
    }
    all.entries[id] = &entry_of(*node);
    inputs.clear();
    for (const StepEndpoint input : graph_.inputs_of(node)) inputs.push_back(graph_.output(input));
    const KernelInit init{*node, inputs, device_, all.entries[id], options_.kernels};
    run_as(id, make(init));
    all.cost_ns[id] = estimated_ns(*all.kernels[id], *all.entries[id], init);
    all.joinable[id] = joinable(init);
  }
  return all;
}

PlanJoins::Candidate PlanKernels::joinable(const KernelInit& init) const {
  if (!options_.joins_nodes || init.entry->joint == nullptr) return {};
  const JointKernel* const joint = init.entry->joint(init.node.types);
  if (joint == nullptr) return {};
  const std::optional<std::int64_t> bytes = joint->held_bytes(init);
  return bytes ? PlanJoins::Candidate{joint, *bytes} : PlanJoins::Candidate{};
}

const AnyKernel& PlanKernels::after_controls() {
  if (after_controls_ == nullptr) after_controls_ = &own(std::make_unique<AfterControlInputs>());
  return *after_controls_;
}

const KernelEntry& PlanKernels::entry_of(const Node& node) {
  const KernelEntry*& entry = entry_of_op_[node.op];
  if (entry == nullptr) entry = options_.kernels->find(device_.type, node.op->name);
  Status status;
  if (entry == nullptr) {
    const bool moves = node.op->role == OpRole::send || node.op->role == OpRole::recv;
    status = Status::not_found(str_cat("op ", node.op->name, " has no ", device_.type,
                                       " kernel in the tables that the session was given",
                                       moves ? "; what moves tensors between devices is df::Send and df::Recv" : ""));
  } else if (entry->op != node.op) {
    status = Status::invalid_argument(
        str_cat("the graph's op ", node.op->name, " is not the one of that name in the session's tables"));
  } else if (!entry->supports_types(node.types)) {
    std::string types;
    for (std::size_t t = 0; t < node.types.size; ++t) types += str_cat(t == 0 ? "" : ", ", dtype_name(node.types[t]));
    status = Status::not_found(str_cat("op ", node.op->name, " has no ", device_.type, " kernel for ", types));
  }
  if (status.ok()) return *entry;
  throw_error(status.with_node(node.op->name, node.name).with_device(device_.name).with_location(node.where));
}

const AnyKernel& PlanKernels::make_call(const StepNode& node) {
  const StepCall* const call = graph_.call_of(node);
  if (call == nullptr) {
    throw_error(Status::internal("the functions that it calls were not attached").with_node(node.op->name, node->name));
  }
  if (call->max_kept_bytes >= 0 && !call->kept.empty() && device_.memory != nullptr) {
    throw_error(Status::unimplemented("max_kept_bytes: what a loop keeps goes to a file from the host's memory alone")
                    .with_node(node.op->name, node->name)
                    .with_device(device_.name)
                    .with_location(node->where));
  }
  if (node.op->role == OpRole::frames) return own(make_frames_kernel(*call->bodies.front(), options_));
  PlanOptions options = options_;
  options.streams = false;
  std::vector<std::shared_ptr<CalledPlan>> bodies;
  bodies.reserve(call->bodies.size());
  if (options.called == nullptr) {
    if (own_called_ == nullptr) own_called_ = std::make_shared<CalledPlans>();
    options.called = own_called_.get();
  }
  for (std::size_t b = 0; b < call->bodies.size(); ++b) {
    const std::shared_ptr<const StepGraph>& body = call->bodies[b];
    if (body == nullptr) {
      // The plan that this kernel is part of belongs to `around`, and the caller outside owns that.
      CalledPlan* const around = options.called->around.at(call->around_of(b));
      bodies.push_back(std::shared_ptr<CalledPlan>(std::shared_ptr<void>(), around));
      continue;
    }
    // The condition of a loop keeps all its feeds until it is over; the body keeps the feeds that are no loop
    // variables.
    options.holds_feeds_from = std::numeric_limits<std::size_t>::max();
    if (node.op->role == OpRole::loop) options.holds_feeds_from = b == 0 ? 0 : node->outputs.size() - call->kept.size();
    const std::pair key(body.get(), options.holds_feeds_from);
    if (const auto found = options.called->by_body.find(key); found != options.called->by_body.end()) {
      bodies.push_back(found->second);
      continue;
    }
    bodies.push_back(make_called_plan());
    if (body->recursion >= 0) options.called->around[body->recursion] = bodies.back().get();
    set_plan(*bodies.back(), Plan::compile(*body, options));
    options.called->by_body.emplace(key, bodies.back());
  }
  return own(make_call_kernel(node.op->role, *call, std::move(bodies)));
}

const AnyKernel& PlanKernels::make(const KernelInit& init) {
  const Node& node = init.node;
  const DeviceContext& device = init.device;
  // The key includes the op: in another step a pass may have put another node in the node's place.
  const auto key = [&node] { return str_cat(node.op->name, ' ', without_copy(node.name)); };
  if (options_.kept != nullptr && node.op->is_stateful) {
    if (std::shared_ptr<AnyKernel> found = options_.kept->find(device.name, key())) return own_kept(std::move(found));
  }
  std::unique_ptr<AnyKernel> kernel;
  try {
    kernel = init.entry->make(init);
    if (kernel == nullptr)
      throw_error(Status::internal(str_cat("the table's kernel of op ", node.op->name, " is none")));
  } catch (...) {
    throw_error(status_of_current_exception()
                    .with_node(node.op->name, node.name)
                    .with_device(device.name)
                    .with_location(node.where));
  }
  if (options_.kept != nullptr && kernel->traits().keeps_state) {
    return own_kept(options_.kept->keep(device.name, key(), std::move(kernel)));
  }
  return own(std::move(kernel));
}

}  // namespace dflow::detail
