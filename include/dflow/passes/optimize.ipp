#pragma once

#include <dflow/base/position_table.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/passes/optimize.hpp>
#include <dflow/passes/prune.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

bool is_constant(const StepNode& node) { return node.op->role == OpRole::constant && !node.is_fed_only; }

template <class T>
using ByStepNode = IndexedVector<StepNodeId, T>;

ByStepNode<bool> fed_nodes(const StepGraph& graph) {
  ByStepNode<bool> is_fed(graph.nodes.size());
  for (const StepEndpoint feed : graph.feeds) is_fed[feed.node] = true;
  return is_fed;
}

/// Runs one node on the host, outside any step. Empty if its kernel does not exist, is asynchronous or fails: the node
/// then stays, and fails in the step that runs it.
std::optional<std::vector<AnyTensor>> evaluate(const StepGraph& graph, const Node& node,
                                               std::span<const StepEndpoint> edges, const PassContext& pass) {
  const DeviceContext& host = *pass.host;
  const KernelEntry* entry = pass.kernels->find(host.type, node.op->name);
  if (entry == nullptr || entry->op != node.op || !entry->supports_types(node.types)) return std::nullopt;
  std::vector<AnyTensor> slots;
  std::vector<OutputInfo> inputs;
  std::vector<SlotId> input_slots;
  for (const StepEndpoint input : edges) {
    input_slots.emplace_back(slots.size());
    slots.push_back(constant_value(*graph.node(input.node)));
    inputs.push_back(graph.output(input));
  }
  KernelContext::Wiring wiring;
  wiring.node = &node;
  wiring.inputs = input_slots.data();
  wiring.num_inputs = static_cast<std::int32_t>(input_slots.size());
  wiring.first_output = SlotId(slots.size());
  wiring.num_outputs = static_cast<std::int32_t>(node.outputs.size());
  const std::size_t num_inputs = slots.size();
  slots.resize(num_inputs + node.outputs.size());
  try {
    const std::unique_ptr<AnyKernel> kernel = entry->make(KernelInit{node, inputs, host, entry, pass.kernels});
    if (kernel == nullptr || kernel->is_async()) return std::nullopt;
    StepResources resources;
    StepContext step;
    step.resources = &resources;
    KernelContext context(slots.data(), wiring, host, step);
    kernel->run(context);
    for (int o = 0; o < context.num_outputs(); ++o) {
      if (context.output(o).dtype() != context.output_dtype(o)) return std::nullopt;
    }
  } catch (...) {
    return std::nullopt;
  }
  return std::vector<AnyTensor>(slots.begin() + static_cast<std::ptrdiff_t>(num_inputs), slots.end());
}

/// The bytes of all outputs if their shapes are known.
std::optional<std::size_t> known_output_bytes(const Node& node) {
  std::size_t bytes = 0;
  for (const OutputInfo& output : node.outputs) {
    const std::optional<std::int64_t> elements = output.shape.num_elements();
    if (!elements || !is_element(output.dtype)) return std::nullopt;
    bytes += static_cast<std::size_t>(*elements) * size_of(output.dtype);
  }
  return bytes;
}

Node constant_like(const Node& node, std::size_t output, AnyTensor value) {
  Node constant;
  constant.op = &op_def<Const>;
  constant.name = output == 0 ? node.name : str_cat(node.name, "/_folded_", output);
  constant.types.push_back(value.dtype());
  constant.outputs = {{value.dtype(), value.shape()}};
  constant.attrs = reflect::share(Const::Attrs{std::move(value)});
  constant.where = node.where;
  return constant;
}

/// Preconditions for computing a node once and for all, except the conditions on its inputs.
bool may_be_folded(const StepNode& node, bool is_fed, bool is_target) {
  return !is_fed && !node.is_fed_only && !node.op->is_stateful && node.num_inputs != 0 && node.num_outputs != 0 &&
         node.num_controls == 0 && !is_target;
}

/// For each node, how much needs it: edges, control edges, feeds, fetches and targets.
ByStepNode<std::int32_t> count_needs(const StepGraph& graph) {
  ByStepNode<std::int32_t> needs(graph.nodes.size());
  for (const StepNode& node : graph.nodes) {
    for (const StepEndpoint input : graph.inputs_of(node)) ++needs[input.node];
    for (const StepNodeId control : graph.controls_of(node)) ++needs[control];
  }
  for (const StepEndpoint feed : graph.feeds) ++needs[feed.node];
  for (const StepEndpoint fetch : graph.fetches) ++needs[fetch.node];
  for (const StepNodeId target : graph.targets) ++needs[target];
  return needs;
}

/// Moves a graph's nodes into another graph. Nodes whose inputs are all constants become their values, but for large
/// ones. Stateful ops, fed edges, targets, nodes with control inputs and nodes whose constants have control inputs
/// stay.
class Folding {
 public:
  Folding(StepGraph& graph, const PassContext& context) : graph_(graph), context_(context), is_fed_(fed_nodes(graph)) {
    is_target_.resize(graph.nodes.size());
    for (const StepNodeId target : graph.targets) is_target_[target] = true;
  }

  /// Folding begins at a node that reads constants alone, and most steps have no node like that.
  bool has_work() const {
    for (const StepNodeId id : graph_.nodes.indices()) {
      const StepNode& node = graph_.node(id);
      const std::span<const StepEndpoint> inputs = std::as_const(graph_).inputs_of(node);
      if (may_be_folded(node, is_fed_[id], is_target_[id]) &&
          std::all_of(inputs.begin(), inputs.end(),
                      [&](StepEndpoint input) { return is_plain_constant(input.node); })) {
        return true;
      }
    }
    return false;
  }

  /// True if it has changed anything.
  bool run() {
    folded_.graph = graph_.graph;
    folded_.made = graph_.made;
    folded_.calls = graph_.calls;
    folded_.recursion = graph_.recursion;
    folded_.gives_dead = graph_.gives_dead;
    folded_.nodes.reserve(graph_.nodes.size());
    folded_.inputs.reserve(graph_.inputs.size());
    folded_.control_inputs.reserve(graph_.control_inputs.size());
    moved_.resize(graph_.nodes.size());
    needs_ = count_needs(graph_);
    new_id_.resize(graph_.nodes.size());
    bool has_changed = false;
    for (const StepNodeId id : graph_.nodes.indices()) {
      context_.check_in(id.position());
      const StepNode& node = graph_.node(id);
      for (StepEndpoint& input : graph_.inputs_of(node)) input = place_of(input);
      for (StepNodeId& control : graph_.controls_of(node)) control = new_id_[control];
      if (fold(id)) {
        has_changed = true;
        continue;
      }
      // A reader of a constant waits for the nodes that the constant was built after.
      const bool is_value = is_plain_constant(id);
      new_id_[id] = folded_.append(node, graph_.inputs_of(node), graph_.controls_of(node));
      is_value_.push_back(is_value);
      folded_from_.emplace_back();
    }
    for (const StepEndpoint feed : graph_.feeds) folded_.feeds.push_back(place_of(feed));
    for (const StepEndpoint fetch : graph_.fetches) folded_.fetches.push_back(place_of(fetch));
    for (const StepNodeId target : graph_.targets) folded_.targets.push_back(new_id_[target]);
    graph_ = std::move(folded_);
    return has_changed;
  }

 private:
  bool is_plain_constant(StepNodeId id) const {
    const StepNode& node = graph_.node(id);
    return !is_fed_[id] && is_constant(node) && node.num_controls == 0;
  }

  StepEndpoint place_of(StepEndpoint edge) const {
    const auto& outputs = moved_[edge.node];
    return outputs.empty() ? StepEndpoint{new_id_[edge.node], edge.index}
                           : outputs[static_cast<std::size_t>(edge.index)];
  }

  /// Puts a constant in the place of each of a node's outputs, if it can be computed.
  bool fold(StepNodeId id) {
    constexpr std::size_t max_bytes = 10 << 20;
    const StepNode& node = graph_.node(id);
    const std::span<const StepEndpoint> inputs = graph_.inputs_of(node);
    const auto is_value = [&](StepEndpoint input) { return is_value_[input.node]; };
    if (!may_be_folded(node, is_fed_[id], is_target_[id]) || !std::all_of(inputs.begin(), inputs.end(), is_value)) {
      return false;
    }
    const std::optional<std::size_t> bytes = known_output_bytes(*node);
    if (!bytes || *bytes > max_bytes) return false;
    auto values = evaluate(folded_, *node, inputs, context_);
    if (!values) return false;
    for (std::size_t o = 0; o < values->size(); ++o) {
      moved_[id].push_back({folded_.append(constant_like(*node, o, std::move((*values)[o])), node.placed_on), 0});
      is_value_.push_back(true);
      folded_from_.push_back(id);
    }
    new_id_[id] = moved_[id].front().node;
    for (const StepEndpoint input : inputs) has_been_read(folded_from_[input.node]);
    return true;
  }

  /// A long chain of large values holds two of them at a time.
  void has_been_read(StepNodeId folded) {
    if (!folded.is_valid() || --needs_[folded] != 0) return;
    for (const StepEndpoint value : moved_[folded]) folded_.drop_made_attrs(value.node);
  }

  StepGraph& graph_;
  const PassContext& context_;
  ByStepNode<bool> is_fed_, is_target_;
  StepGraph folded_;
  ByStepNode<std::vector<StepEndpoint>> moved_;  ///< new place of each output of a folded node
  ByStepNode<StepNodeId> new_id_;
  ByStepNode<bool> is_value_;           ///< by new id: a constant that is read as such, not fed
  ByStepNode<StepNodeId> folded_from_;  ///< by new id: the node that had this value, if any
  ByStepNode<std::int32_t> needs_;      ///< of each node, how many have not had its value
};

/// True if it has changed anything.
bool fold(StepGraph& graph, const PassContext& context) {
  if (context.host == nullptr) return false;
  Folding folding(graph, context);
  return folding.has_work() && folding.run();
}

std::uint64_t node_hash(const StepGraph& graph, const StepNode& node) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op);
  for (std::size_t t = 0; t < node->types.size; ++t) hash = mix_hash(hash, static_cast<std::uint64_t>(node->types[t]));
  for (const StepEndpoint input : graph.inputs_of(node)) hash = mix_hash(hash, EndpointHash{}(input));
  if (node->attrs != nullptr) {
    for (const AttrField& field : node.op->attr_fields) hash = mix_hash(hash, attr_hash(field.get(node->attrs.get())));
  }
  for (const StepNodeId control : graph.controls_of(node))
    hash = mix_hash(hash, ~static_cast<std::uint64_t>(control.value()));
  return mix_hash(hash, static_cast<std::uint64_t>(node.placed_on));
}

bool computes_the_same(const StepGraph& graph, const StepNode& a, const StepNode& b) {
  const auto is_equal = [](const auto& x, const auto& y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  if (a.op != b.op || a.placed_on != b.placed_on || a.num_outputs != b.num_outputs || !(a->types == b->types) ||
      !is_equal(graph.inputs_of(a), graph.inputs_of(b)) || !is_equal(graph.controls_of(a), graph.controls_of(b))) {
    return false;
  }
  return same_attrs(*a, *b);
}

/// Comparing large constants costs more than keeping both.
bool is_worth_merging(const StepNode& node) {
  if (!is_constant(node)) return true;
  return constant_value(*node).bytes() <= 4096;
}

/// True if it has changed anything.
bool merge(StepGraph& graph, const PassContext& context) {
  const ByStepNode<bool> is_fed = fed_nodes(graph);
  bool has_changed = false;
  ByStepNode<StepNodeId> same_as(graph.nodes.size());
  PositionTable seen;
  for (const StepNodeId id : graph.nodes.indices()) {
    context.check_in(id.position());
    const StepNode& node = graph.node(id);
    same_as[id] = id;
    for (StepEndpoint& input : graph.inputs_of(node)) input.node = same_as[input.node];
    for (StepNodeId& control : graph.controls_of(node)) control = same_as[control];
    if (is_fed[id] || node.is_fed_only || node.op->is_stateful || node.num_outputs == 0 || !is_worth_merging(node))
      continue;
    const StepNodeId twin(seen.find_or_insert(node_hash(graph, node), id.value(), [&](std::int32_t other) {
      return computes_the_same(graph, graph.node(StepNodeId(other)), node);
    }));
    if (!twin.is_valid()) continue;
    same_as[id] = twin;
    has_changed = true;
  }
  for (StepEndpoint& fetch : graph.fetches) fetch.node = same_as[fetch.node];
  return has_changed;
}

bool has_kernel_for(const KernelEntry& kernel, const TypeArgs& types) {
  const std::span<const TypeParamDef> params = kernel.op->type_params;
  if (types.size != params.size() || !kernel.supports_types(types)) return false;
  for (std::size_t p = 0; p < params.size(); ++p) {
    if (!params[p].allows(types[p])) return false;
  }
  return true;
}

/// Makes the node `reader` also do the work of `first`, its first input, if there is a kernel for both. Errors and
/// traces name both nodes, and the line where the first was built, because its shapes cause the errors at run time.
bool fuse_pair(StepGraph& graph, const StepNode& first, StepNodeId reader, std::span<const Fusions::Entry> entries) {
  const StepNode& second = graph.node(reader);
  for (const Fusions::Entry& entry : entries) {
    if (entry.first != first.op || entry.reader != second.op || !(first->types == second->types) ||
        !has_kernel_for(*entry.kernel, second->types)) {
      continue;
    }
    std::shared_ptr<const void> attrs = entry.attrs(*first, *second);
    if (attrs == nullptr) continue;
    Node both = *second;
    both.op = entry.kernel->op;
    both.name = str_cat(first->name, " + ", second->name);
    both.where = first->where;
    both.attrs = std::move(attrs);
    const std::span<const StepEndpoint> of_first = graph.inputs_of(first), of_second = graph.inputs_of(second);
    std::vector<StepEndpoint> inputs(of_first.begin(), of_first.end());
    inputs.insert(inputs.end(), of_second.begin() + 1, of_second.end());
    std::vector<StepNodeId> controls(graph.controls_of(second).begin(), graph.controls_of(second).end());
    for (const StepNodeId control : graph.controls_of(first)) {
      if (std::find(controls.begin(), controls.end(), control) == controls.end()) controls.push_back(control);
    }
    graph.replace(reader, std::move(both), inputs, controls);
    return true;
  }
  return false;
}

/// True if it has changed anything.
bool fuse(StepGraph& graph, const PassContext& context) {
  if (context.fusions == nullptr || context.fusions->empty()) return false;
  ByStepNode<std::int32_t> needs;
  bool has_changed = false;
  for (const StepNodeId id : graph.nodes.indices()) {
    context.check_in(id.position());
    const StepNode& reader = graph.node(id);
    if (reader.placed_on < 0 || reader.num_inputs == 0 || reader.is_fed_only) continue;
    const std::span<const Fusions::Entry> entries = context.fusions->on(static_cast<std::size_t>(reader.placed_on));
    if (std::none_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.reader == reader.op; })) {
      continue;
    }
    const StepNodeId source = graph.inputs_of(reader).front().node;
    const StepNode& first = graph.node(source);
    if (first.placed_on != reader.placed_on || first.is_fed_only) continue;
    if (needs.empty()) needs = count_needs(graph);
    if (needs[source] != 1) continue;
    has_changed |= fuse_pair(graph, first, id, entries);
  }
  return has_changed;
}

/// Bodies that calls share stay shared.
inline void optimize_bodies(StepGraph& graph, const PassOptions& options, const PassContext& context) {
  for (const StepNode& node : graph.nodes) {
    // The nodes of frames are no function of their inputs, and stay as they were built.
    if (graph.call_of(node) == nullptr || node.op->role == OpRole::frames) continue;
    auto call = std::make_shared<StepCall>(*graph.call_of(node));
    for (std::shared_ptr<const StepGraph>& body : call->bodies) {
      if (body == nullptr) continue;
      OptimizedBody& known = (*context.bodies)[body.get()];
      if (known.optimized == nullptr) {
        known.original = body;
        known.optimized = std::make_shared<const StepGraph>(optimize(*body, options, context));
      }
      body = known.optimized;
    }
    graph.calls[static_cast<std::size_t>(node.call)] = std::move(call);
  }
}

}  // namespace detail

StepGraph merge_common_subexpressions(StepGraph graph, const PassContext& context) {
  require_topological_order(graph);
  detail::merge(graph, context);
  return graph;
}

StepGraph fuse(StepGraph graph, const PassContext& context) {
  require_topological_order(graph);
  detail::fuse(graph, context);
  return graph;
}

StepGraph optimize(StepGraph graph, const PassOptions& options, const PassContext& context) {
  const bool has_work = options.constant_folding || options.common_subexpressions || options.fusion || options.chains;
  if (has_work) require_topological_order(graph);
  if (!graph.calls.empty()) {
    std::map<const StepGraph*, OptimizedBody> bodies;
    PassContext of_bodies = context;
    if (of_bodies.bodies == nullptr) of_bodies.bodies = &bodies;
    detail::optimize_bodies(graph, options, of_bodies);
  }
  // Nodes left without a reader have no value any more.
  bool has_changed = options.constant_folding && detail::fold(graph, context);
  if (has_changed) graph = prune(std::move(graph));
  has_changed = options.common_subexpressions && detail::merge(graph, context);
  if (has_changed) graph = prune(std::move(graph));
  // A node left without a reader would count as a reader.
  has_changed = options.fusion && detail::fuse(graph, context);
  if (has_changed) graph = prune(std::move(graph));
  has_changed = options.chains && context.chains != nullptr &&
                chain(graph, *context.chains, context.feeds_come_apart, context.check);
  return has_changed ? prune(std::move(graph)) : graph;
}

}  // namespace dflow
