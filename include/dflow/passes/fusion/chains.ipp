#pragma once

#include <dflow/op/formula.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>
#include <dflow/passes/aliveness.hpp>
#include <dflow/passes/contract.hpp>
#include <dflow/passes/fusion/chains.hpp>
#include <dflow/passes/fusion/gate_sets.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace dflow {

namespace detail {

/// Finds the nodes of a step that become chains.
///
/// A node's kind is its device and its shape. Its level is the level of an input of its kind, else a higher one. A
/// path between two nodes of the same level and kind leads through nodes of that level and kind alone. All nodes of
/// one level and kind can therefore become one node without any cycle, and so can a run of them that follow one
/// another in the order of the step.
class ChainFinder {
 public:
  ChainFinder(const StepGraph& graph, const Chains& chains, bool feeds_come_apart, FunctionRef<void()>* check)
      : graph_(graph),
        chains_(chains),
        feeds_come_apart_(feeds_come_apart),
        check_(check),
        feeds_(graph.feeds, graph.nodes.size()) {}

  /// The number of its chain for each node, -1 for nodes in none; empty if there are no chains.
  IndexedVector<StepNodeId, std::ptrdiff_t> find() {
    if (!find_kinds()) return {};
    set_levels();
    sink();
    group();
    return num_groups_ == 0 ? IndexedVector<StepNodeId, std::ptrdiff_t>() : std::move(group_of_);
  }

 private:
  using ByNode = IndexedVector<StepNodeId, std::int32_t>;

  void check_in(StepNodeId id) const {
    if (check_ != nullptr && id.position() % 1024 == 0) (*check_)();
  }

  /// False if there are no two nodes for a chain.
  bool find_kinds() {
    std::map<std::tuple<std::int32_t, GateSets::Id, int, std::vector<std::int64_t>>, std::int32_t> kinds;
    set_gates();
    kind_.resize(graph_.nodes.size());
    num_steps_.resize(graph_.nodes.size());
    std::size_t count = 0;
    IndexedVector<StepNodeId, bool> stays(graph_.nodes.size());
    for (const StepEndpoint feed : graph_.feeds) stays[feed.node] = true;
    for (const StepNodeId target : graph_.targets) stays[target] = true;
    needs_.resize(graph_.nodes.size());
    for (const StepNode& node : graph_.nodes) {
      for (const StepEndpoint input : graph_.inputs_of(node)) needs_[input.node] += feeds_.contains(input) ? 0 : 1;
    }
    for (const StepEndpoint fetch : graph_.fetches) ++needs_[fetch.node];
    for (const StepNode& node : graph_.nodes) {
      for (const StepNodeId control : graph_.controls_of(node)) {
        if (control.is_valid() && gates_[control] == GateSets::many) ++needs_[control];
      }
    }
    for (const StepNodeId id : graph_.nodes.indices()) {
      check_in(id);
      kind_[id] = -1;
      const StepNode& node = graph_.node(id);
      const Formula* const formula = stays[id] || needs_[id] == 0 ? nullptr : chains_.formula_of(node);
      if (formula == nullptr) continue;
      const PartialShape& shape = node->outputs[0].shape;
      if (!fits(*formula, node, shape)) continue;
      const std::span<const std::int64_t> dims = shape.dims();
      kind_[id] = kinds
                      .try_emplace({node.placed_on, gates_[id], shape.rank(), {dims.begin(), dims.end()}},
                                   static_cast<std::int32_t>(kinds.size()))
                      .first->second;
      num_steps_[id] = static_cast<std::int32_t>(formula->steps.size());
      ++count;
    }
    return count > 1;
  }

  /// Finds the late nodes that each node waits for, directly or not. All nodes of a chain wait for the same late
  /// nodes, so no node waits for more than it did.
  void set_gates() {
    gates_.resize(graph_.nodes.size());
    std::unordered_map<const OpDef*, bool> may_wait;
    const auto is_gate = [&](const StepNode& node) {
      const OpRole role = node.op->role;
      if (node.is_fed_only || role == OpRole::variable) return false;
      if (role != OpRole::ordinary) return comes_late(role);
      const std::span<const StepEndpoint> inputs = graph_.inputs_of(node);
      const bool uses_state = std::any_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) {
        return graph_.output(input).dtype == DType::resource && graph_.node(input.node).op->role != OpRole::variable;
      });
      if (uses_state) return true;
      const auto [found, is_new] = may_wait.try_emplace(node.op, false);
      if (is_new) found->second = chains_.may_wait(*node.op);
      return found->second;
    };
    GateSets& sets = gate_sets_;
    for (const StepNodeId id : graph_.nodes.indices()) {
      check_in(id);
      const StepNode& node = graph_.node(id);
      GateSets::Id set = GateSets::none;
      for (const StepEndpoint input : graph_.inputs_of(node)) {
        if (!feeds_.contains(input)) {
          if (input.node < id) set = sets.join(set, gates_[input.node]);
        } else if (feeds_come_apart_) {
          set = sets.join(set, sets.only(input));
        }
      }
      for (const StepNodeId control : graph_.controls_of(node)) {
        if (control.is_valid() && control < id) set = sets.join(set, gates_[control]);
      }
      gates_[id] = is_gate(node) ? sets.join(set, sets.only({id, -1})) : set;
    }
  }

  static bool comes_late(OpRole role) {
    return role == OpRole::recv || role == OpRole::collective || passes_on(role) || calls_functions(role);
  }

  /// False if an input is known to have a shape that the formula is not for: the op's own kernel takes more shapes.
  bool fits(const Formula& formula, const StepNode& node, const PartialShape& shape) const {
    if (formula.shapes != Formula::Shapes::same) return true;
    const std::span<const StepEndpoint> inputs = graph_.inputs_of(node);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](StepEndpoint input) { return graph_.output(input).shape.is_compatible_with(shape); });
  }

  bool are_alike(StepEndpoint source, StepNodeId reader) const {
    return kind_[reader] >= 0 && kind_[source.node] == kind_[reader] && !feeds_.contains(source);
  }

  void set_levels() {
    level_.resize(graph_.nodes.size());
    for (const StepNodeId id : graph_.nodes.indices()) {
      const StepNode& node = graph_.node(id);
      std::int32_t level = 0;
      for (const StepEndpoint input : graph_.inputs_of(node)) {
        level = std::max(level, level_[input.node] + (are_alike(input, id) ? 0 : 1));
      }
      for (const StepNodeId control : graph_.controls_of(node)) {
        if (control.is_valid()) level = std::max(level, level_[control] + 1);
      }
      level_[id] = level;
    }
  }

  /// Moves a node to the later level of its readers where possible: this saves a tensor.
  void sink() {
    constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
    ByNode latest(graph_.nodes.size());
    IndexedVector<StepNodeId, bool> joins(graph_.nodes.size());
    for (const StepNodeId id : graph_.nodes.indices()) latest[id] = none;
    for (const StepEndpoint fetch : graph_.fetches) latest[fetch.node] = 0;
    const auto limit = [&](StepNodeId source, std::int32_t level, bool is_alike) {
      if (level > latest[source]) return;
      joins[source] = is_alike || (level == latest[source] && joins[source]);
      latest[source] = level;
    };
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const StepNodeId id(i);
      const StepNode& node = graph_.node(id);
      if (kind_[id] >= 0 && joins[id] && latest[id] != none) level_[id] = std::max(level_[id], latest[id]);
      for (const StepEndpoint input : graph_.inputs_of(node)) {
        const bool is_alike = are_alike(input, id);
        limit(input.node, is_alike ? level_[id] : level_[id] - 1, is_alike);
      }
      for (const StepNodeId control : graph_.controls_of(node)) {
        if (control.is_valid()) limit(control, level_[id] - 1, false);
      }
    }
  }

  /// Nodes of one kind and level that read one another, directly or by way of others, in as many groups as they need.
  void group() {
    ByNode root(graph_.nodes.size());
    const auto find_root = [&root](StepNodeId id) {
      while (root[id] != id.value()) {
        root[id] = root[StepNodeId(root[id])];
        id = StepNodeId(root[id]);
      }
      return id;
    };
    group_of_.resize(graph_.nodes.size());
    for (const StepNodeId id : graph_.nodes.indices()) {
      root[id] = id.value();
      group_of_[id] = -1;
      for (const StepEndpoint input : graph_.inputs_of(graph_.node(id))) {
        if (are_alike(input, id) && level_[input.node] == level_[id])
          root[find_root(input.node)] = find_root(id).value();
      }
    }
    std::map<std::int32_t, std::vector<StepNodeId>> members;
    for (const StepNodeId id : graph_.nodes.indices()) {
      if (kind_[id] >= 0) members[find_root(id).value()].push_back(id);
    }
    const bool has_dead = may_be_dead();
    for (const auto& [first, nodes] : members) {
      const bool has_many = gates_[nodes.front()] == GateSets::many;
      const std::size_t most_outputs = has_dead || has_many ? 1 : max_chain_outputs;
      for (std::span<const StepNodeId> rest(nodes); !rest.empty();) {
        const std::size_t size = fitting(rest, most_outputs);
        if (size > 1) {
          for (const StepNodeId id : rest.first(size)) group_of_[id] = num_groups_;
          ++num_groups_;
        }
        rest = rest.subspan(size);
      }
    }
  }

  /// How many of the nodes, from the first on, one kernel has room for.
  std::size_t fitting(std::span<const StepNodeId> nodes, std::size_t most_outputs) const {
    std::vector<StepEndpoint> inputs;
    std::unordered_map<StepNodeId, std::int32_t> unread;  // of members: how much outside needs them, if no more come
    std::size_t outputs = 0, best = 1;
    std::int32_t steps = 0;
    for (std::size_t n = 0; n < nodes.size() && n < max_chain_members; ++n) {
      steps += num_steps_[nodes[n]];
      for (const StepEndpoint input : graph_.inputs_of(graph_.node(nodes[n]))) {
        const auto member = feeds_.contains(input) ? unread.end() : unread.find(input.node);
        if (member != unread.end()) {
          outputs -= --member->second == 0 ? 1 : 0;
        } else if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
          inputs.push_back(input);
        }
      }
      if (inputs.size() > max_chain_inputs || steps > max_chain_steps) break;
      unread.emplace(nodes[n], needs_[nodes[n]]);
      ++outputs;
      if (outputs <= most_outputs) best = n + 1;
    }
    return best;
  }

  /// A result of a chain is dead where any of its inputs is, so one result has to need them all.
  bool may_be_dead() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const StepNode& node) {
      return passes_on(node.op->role) || node.op->role == OpRole::recv || node.op->role == OpRole::frames ||
             Aliveness::gives_dead(graph_, node);
    });
  }

  const StepGraph& graph_;
  const Chains& chains_;
  const bool feeds_come_apart_;
  FunctionRef<void()>* const check_;
  const EdgePositions<StepNodeId> feeds_;
  GateSets gate_sets_;
  IndexedVector<StepNodeId, GateSets::Id> gates_;
  ByNode num_steps_;  ///< of its formula
  ByNode kind_;       ///< -1: it goes into no chain
  ByNode level_;
  ByNode needs_;  ///< how many edges read it or fetch it
  IndexedVector<StepNodeId, std::ptrdiff_t> group_of_;
  std::ptrdiff_t num_groups_ = 0;
};

/// "product + sum + relu"; of a long chain its ends.
inline std::string chain_name(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string all;
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (n + 1 < names.size() && n + 1 >= most) continue;
    if (n > most - 1) all += str_cat(" + ", names.size() - most, "_more");
    all += str_cat(n == 0 ? "" : " + ", names[n]);
  }
  return all;
}

/// Makes the nodes that stand for chains.
class ChainMaker {
 public:
  ChainMaker(const StepGraph& graph, std::span<const StepGroup> groups)
      : graph_(graph), feeds_(graph.feeds, graph.nodes.size()), groups_(groups) {}

  StepReplacement make(StepGraph& fresh, std::size_t number, std::span<const StepEndpoint> inputs,
                       std::span<const StepNodeId> controls) {
    const StepGroup& group = groups_[number];
    ElementwiseChain::Attrs attrs;
    std::vector<StepEndpoint> reads(inputs.begin(), inputs.end());
    std::unordered_map<StepEndpoint, std::int64_t, EndpointHash> place;  // of edges that members read
    const auto add_input = [&](StepEndpoint old) {
      place.emplace(old, static_cast<std::int64_t>(attrs.Tin.size()));
      attrs.Tin.push_back(graph_.output(old).dtype);
    };
    for (const StepEndpoint input : group.inputs) add_input(input);
    for (const StepNodeId id : group.nodes) {
      for (const StepEndpoint input : graph_.inputs_of(graph_.node(id))) {
        const StepNode& source = graph_.node(input.node);
        if (place.contains(input) || !is_free_constant(source) || feeds_.contains(input)) continue;
        add_input(input);
        reads.push_back({constant_in(fresh, input.node), 0});
      }
    }
    const auto num_inputs = static_cast<std::int64_t>(attrs.Tin.size());
    Node both = *graph_.node(group.nodes.back());
    both.where = graph_.node(group.nodes.front())->where;
    both.outputs.clear();
    for (const StepNodeId id : group.nodes) {
      const StepNode& node = graph_.node(id);
      attrs.reads.push_back(node.num_inputs);
      for (const StepEndpoint input : graph_.inputs_of(node)) attrs.reads.push_back(place.at(input));
      const auto member = static_cast<std::int64_t>(attrs.ops.size());
      place.emplace(StepEndpoint{id, 0}, num_inputs + member);
      attrs.ops.emplace_back(node.op->name);
      attrs.names.push_back(node->name);
      for (std::size_t t = 0; t < node->types.size; ++t) attrs.types.push_back(node->types[t]);
      attrs.makes.push_back(node->outputs[0].dtype);
    }
    for (const StepEndpoint output : group.outputs) {
      attrs.gives.push_back(place.at(output) - num_inputs);
      both.outputs.push_back(graph_.output(output));
      attrs.Tout.push_back(both.outputs.back().dtype);
    }
    both.op = &op_def<ElementwiseChain>;
    both.types = {};
    both.name = chain_name(attrs.names);
    both.attrs = reflect::share(std::move(attrs));
    const std::int32_t device = graph_.node(group.nodes.back()).placed_on;
    const StepNodeId made = fresh.append(std::move(both), device, reads, controls);
    StepReplacement replacement;
    for (std::size_t o = 0; o < group.outputs.size(); ++o)
      replacement.outputs.push_back({made, static_cast<std::int32_t>(o)});
    replacement.waited_for.assign(group.waited_for.size(), made);
    return replacement;
  }

 private:
  /// A constant of the same value in the new step, one for all chains.
  StepNodeId constant_in(StepGraph& fresh, StepNodeId old) {
    const auto [found, is_new] = constants_.try_emplace(old);
    if (is_new) found->second = fresh.append(graph_.node(old), {}, {});
    return found->second;
  }

  const StepGraph& graph_;
  const EdgePositions<StepNodeId> feeds_;
  std::span<const StepGroup> groups_;
  std::unordered_map<StepNodeId, StepNodeId> constants_;
};

}  // namespace detail

Chains::Chains(std::span<const KernelTables> kernels) {
  by_device_.reserve(kernels.size());
  for (const KernelTables& tables : kernels) {
    OfDevice& of = by_device_.emplace_back(OfDevice{&tables, {}});
    for (const KernelTable& table : tables.tables()) {
      if (!of.chained_type.empty() || table.find(ElementwiseChain::name) == nullptr) continue;
      of.chained_type = table.device_type();
    }
  }
}

bool Chains::empty() const noexcept {
  return std::all_of(by_device_.begin(), by_device_.end(), [](const OfDevice& of) { return of.chained_type.empty(); });
}

bool Chains::may_wait(const OpDef& op) const {
  return std::any_of(by_device_.begin(), by_device_.end(), [&](const OfDevice& of) {
    const std::span<const KernelTable> tables = of.kernels->tables();
    return std::any_of(tables.begin(), tables.end(), [&](const KernelTable& table) {
      const KernelEntry* const entry = table.find(op.name);
      return entry != nullptr && entry->may_wait;
    });
  });
}

const Formula* Chains::formula_of(const StepNode& node) const {
  if (node.placed_on < 0 || node.is_fed_only || node.num_outputs != 1 || node->types.size == 0) return nullptr;
  if (node.op->is_stateful || node.op->role != OpRole::ordinary) return nullptr;
  const OfDevice& of = by_device_[static_cast<std::size_t>(node.placed_on)];
  const KernelEntry* const entry = of.chained_type.empty() ? nullptr : of.kernels->find(of.chained_type, node.op->name);
  if (entry == nullptr || entry->op != node.op || entry->formula == nullptr || !entry->supports_types(node->types)) {
    return nullptr;
  }
  const Formula* const formula = entry->formula(static_cast<int>(node.num_inputs));
  if (formula == nullptr || formula->num_arguments != static_cast<std::int32_t>(node.num_inputs)) return nullptr;
  // A formula knows of no attributes.
  if (!node.op->attr_fields.empty() && node->attrs != nullptr) {
    Node by_default;
    by_default.op = node.op;
    if (!same_attrs(*node, by_default)) return nullptr;
  }
  for (std::size_t t = 0; t < node->types.size; ++t) {
    if (!formula->holds_for(node->types[t])) return nullptr;
  }
  return formula;
}

bool chain(StepGraph& graph, const Chains& chains, bool feeds_come_apart, FunctionRef<void()>* check) {
  if (chains.empty()) return false;
  const IndexedVector<StepNodeId, std::ptrdiff_t> group_of =
      detail::ChainFinder(graph, chains, feeds_come_apart, check).find();
  if (group_of.empty()) return false;
  const std::vector<StepGroup> groups = find_groups(graph, group_of);
  detail::ChainMaker maker(graph, groups);
  return contract(graph, group_of, groups,
                  [&](StepGraph& fresh, std::size_t number, std::span<const StepEndpoint> inputs,
                      std::span<const StepNodeId> controls) { return maker.make(fresh, number, inputs, controls); });
}

}  // namespace dflow
