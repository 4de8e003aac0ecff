#pragma once

#include <dflow/ops/control/functional.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/span_finder.hpp>
#include <dflow/passes/split_calls.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Whether the node captures a handle of another device. Nothing in its bodies reads this handle on its own.
inline bool takes_far_handle(const StepGraph& graph, const StepNode& node) {
  const auto inputs = graph.inputs_of(node);
  return std::any_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) {
    return is_handle(graph.output(input).dtype) && graph.node(input.node).placed_on != node.placed_on;
  });
}

/// On a device with a memory of its own, where parts of a body may want their arguments in the host's.
inline bool computes_elsewhere(std::span<const DeviceInfo> devices, const StepNode& node) {
  const DeviceInfo& device = devices[static_cast<std::size_t>(node.placed_on)];
  return memory_of(device) != host_memory_of(device);
}

class CallSplitter {
 public:
  CallSplitter(std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels)
      : devices_(devices), kernels_(kernels) {}

  StepGraph split(const StepGraph& graph) {
    do {
      has_changed_ = false;
      seen_.clear();
      look_at_calls(graph);
    } while (has_changed_);
    return expand(graph);
  }

 private:
  using Devices = std::set<std::size_t>;

  /// The needs of a body's parts. They only grow, until all calls of the body, and the calls in it, agree on them.
  struct Needs {
    Devices devices;             ///< that have a part
    std::vector<Devices> feeds;  ///< for each feed the devices where it is given
  };

  static std::size_t device_of(const StepNode& node) { return static_cast<std::size_t>(node.placed_on); }

  // ---- needs by device ----

  void add(Devices& to, const Devices& more) {
    for (const std::size_t device : more) has_changed_ |= to.insert(device).second;
  }
  void add(Devices& to, std::size_t device) { has_changed_ |= to.insert(device).second; }

  /// The needs of the body that a call runs. If the call stands in that body, the needs are found by its number.
  Needs& needs_of(const StepCall& call, std::size_t b) {
    const StepGraph* const body = call.bodies[b].get();
    if (body == nullptr) return of_recursion_[call.around_of(b)];
    return body->recursion >= 0 ? of_recursion_[body->recursion] : of_body_[body];
  }

  void look_at_calls(const StepGraph& graph) {
    for (const StepNode& node : graph.nodes) {
      const StepCall* const call = graph.call_of(node);
      if (call == nullptr || node.is_fed_only) continue;
      if (node.op->role != OpRole::frames) {
        look_at(node, *call);
      } else if (finder_.spans(graph, node)) {
        throw_error(Status::unimplemented("raw control flow cannot have nodes on several devices")
                        .with_node(node.op->name, node->name)
                        .with_location(node->where));
      }
    }
  }

  /// All bodies of one call have the same needs.
  void look_at(const StepNode& node, const StepCall& call) {
    const std::size_t num_feeds = node.num_inputs - call.num_leading;
    const std::size_t num_results = num_results_of(node, call);
    Needs all;
    all.feeds.resize(num_feeds);
    all.devices.insert(device_of(node));
    // A loop's variables live with it.
    if (node.op->role == OpRole::loop) {
      for (std::size_t i = 0; i < num_results; ++i) all.feeds[i].insert(device_of(node));
    }
    for (std::size_t b = 0; b < call.bodies.size(); ++b) {
      if (call.bodies[b] != nullptr) look_into(node, call, b);
      const Needs& needs = needs_of(call, b);
      all.devices.insert(needs.devices.begin(), needs.devices.end());
      for (std::size_t i = 0; i < needs.feeds.size(); ++i) {
        if (!is_variable(node, num_results, i)) all.feeds[i].insert(needs.feeds[i].begin(), needs.feeds[i].end());
      }
    }
    for (std::size_t b = 0; b < call.bodies.size(); ++b) {
      Needs& needs = needs_of(call, b);
      if (needs.feeds.size() < num_feeds) needs.feeds.resize(num_feeds);
      add(needs.devices, all.devices);
      for (std::size_t i = 0; i < num_feeds; ++i) add(needs.feeds[i], all.feeds[i]);
    }
  }

  /// Finds the devices of a body's nodes, and the readers of its feeds.
  void look_into(const StepNode& node, const StepCall& call, std::size_t b) {
    const StepGraph& body = *call.bodies[b];
    if (!seen_.insert({&body, node.op->role, b == 0}).second) return;
    look_at_calls(body);
    const EdgePositions<StepNodeId> feeds(body.feeds, body.nodes.size());
    Devices devices;
    std::vector<Devices> read_at(body.feeds.size());
    const auto read = [&](StepEndpoint edge, const Devices& at) {
      if (const std::int32_t feed = feeds.find(edge); feed >= 0) {
        read_at[static_cast<std::size_t>(feed)].insert(at.begin(), at.end());
      }
    };
    for (const StepNode& each : body.nodes) {
      if (!is_on_device(each)) continue;
      devices.insert(device_of(each));
      const auto inputs = body.inputs_of(each);
      const Needs of_call = needs_of_parts(body, each);
      devices.insert(of_call.devices.begin(), of_call.devices.end());
      for (std::size_t i = 0; i < inputs.size(); ++i) read(inputs[i], of_call.feeds[i]);
    }
    for (std::size_t f = 0; f < body.fetches.size(); ++f) {
      const bool asks = node.op->role == OpRole::loop && b == 0;
      read(body.fetches[f], asks ? needs_of(call, b).devices : Devices{device_of(node)});
    }
    Needs& needs = needs_of(call, b);
    needs.feeds.resize(body.feeds.size());
    add(needs.devices, devices);
    for (std::size_t i = 0; i < read_at.size(); ++i) {
      if (!is_variable(node, num_results_of(node, call), i)) add(needs.feeds[i], read_at[i]);
    }
  }

  /// The devices of a node's parts, and for each input the devices that get it.
  Needs needs_of_parts(const StepGraph& graph, const StepNode& node) {
    Needs needs;
    const StepCall* const call = graph.call_of(node);
    if (!is_split(graph, node)) {
      needs.devices = {device_of(node)};
      needs.feeds.assign(node.num_inputs, needs.devices);
      return needs;
    }
    needs.devices = needs_of(*call, 0).devices;
    needs.feeds.assign(call->num_leading, needs.devices);
    const std::vector<Devices>& of_bodies = needs_of(*call, 0).feeds;
    needs.feeds.insert(needs.feeds.end(), of_bodies.begin(), of_bodies.end());
    needs.feeds.resize(node.num_inputs);
    const std::size_t num_results = num_results_of(node, *call);
    for (std::size_t i = 0; node.op->role == OpRole::loop && i < num_results; ++i) needs.feeds[i] = {device_of(node)};
    return needs;
  }

  bool is_split(const StepGraph& graph, const StepNode& node) {
    const StepCall* const call = graph.call_of(node);
    if (call == nullptr || node.is_fed_only || node.op->role == OpRole::frames) return false;
    return needs_of(*call, 0).devices.size() > 1 || takes_far_handle(graph, node) || computes_elsewhere(devices_, node);
  }

  static std::size_t num_results_of(const StepNode& node, const StepCall& call) {
    return static_cast<std::size_t>(node.num_outputs) - call.kept.size();
  }
  static bool is_variable(const StepNode& node, std::size_t num_results, std::size_t feed) {
    return node.op->role == OpRole::loop && feed < num_results;
  }

  // ---- calls by device ----

  /// The nodes in the new graph that stand for a node of the old one.
  struct Now {
    StepNodeId node;
    std::vector<StepEndpoint> outputs;    ///< of a call that was split
    std::vector<StepNodeId> others;       ///< its parts but the first
    std::vector<StepNodeId> that_change;  ///< the other parts that change state
  };

  /// The graph with its calls split.
  StepGraph expand(const StepGraph& graph) {
    StepGraph fresh;
    fresh.graph = graph.graph;
    fresh.made = graph.made;
    fresh.recursion = graph.recursion;
    IndexedVector<StepNodeId, Now> now(graph.nodes.size());
    const auto moved = [&](StepEndpoint edge) -> StepEndpoint {
      const Now& of = now[edge.node];
      return of.outputs.empty() ? StepEndpoint{of.node, edge.index} : of.outputs[static_cast<std::size_t>(edge.index)];
    };
    for (const StepNodeId id : graph.nodes.indices()) {
      const StepNode& node = graph.node(id);
      std::vector<StepEndpoint> inputs;
      std::vector<StepNodeId> controls;
      for (const StepNodeId control : graph.controls_of(node)) {
        controls.push_back(now[control].node);
        controls.insert(controls.end(), now[control].others.begin(), now[control].others.end());
      }
      for (const StepEndpoint input : graph.inputs_of(node)) {
        inputs.push_back(moved(input));
        const std::vector<StepNodeId>& change = now[input.node].that_change;
        controls.insert(controls.end(), change.begin(), change.end());
      }
      std::sort(controls.begin(), controls.end());
      controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
      if (is_split(graph, node)) {
        now[id] = add_parts(fresh, graph, node, inputs, controls);
        continue;
      }
      now[id].node = fresh.append(node, inputs, controls);
      if (graph.call_of(node) == nullptr) continue;
      fresh.node(now[id].node).call = static_cast<std::int32_t>(fresh.calls.size());
      fresh.calls.push_back(graph.calls[static_cast<std::size_t>(node.call)]);
    }
    for (const StepEndpoint feed : graph.feeds) fresh.feeds.push_back(moved(feed));
    for (const StepEndpoint fetch : graph.fetches) fresh.fetches.push_back(moved(fetch));
    for (const StepNodeId target : graph.targets) fresh.targets.push_back(now[target].node);
    for (const Now& each : now) fresh.targets.insert(fresh.targets.end(), each.others.begin(), each.others.end());
    return fresh;
  }

  Now add_parts(StepGraph& fresh, const StepGraph& graph, const StepNode& node, std::span<const StepEndpoint> inputs,
                std::span<const StepNodeId> controls) {
    const StepCall& call = *graph.call_of(node);
    const std::size_t num_results = num_results_of(node, call);
    const Needs needs = needs_of_parts(graph, node);
    if (node.op->role == OpRole::loop && std::any_of(call.bodies.begin(), call.bodies.end(), is_recursive)) {
      throw_error(Status::unimplemented("a loop whose condition or body calls itself cannot be on several devices")
                      .with_node(node.op->name, node->name)
                      .with_location(node->where));
    }
    std::vector<std::size_t> devices{device_of(node)};  // its own first
    for (const std::size_t device : needs.devices) {
      if (device != devices.front()) devices.push_back(device);
    }
    std::vector<const Parts*> bodies;
    std::vector<const std::vector<std::size_t>*> kept_at;
    for (std::size_t b = 0; b < call.bodies.size(); ++b) {
      bodies.push_back(call.bodies[b] == nullptr ? nullptr : &parts_of(node, call, b, devices, needs));
      kept_at.push_back(bodies[b] == nullptr ? &kept_at_of_recursion_[call.around_of(b)] : &bodies[b]->kept_at);
    }
    Now now;
    now.outputs.resize(static_cast<std::size_t>(node.num_outputs));
    for (const std::size_t device : devices) {
      const bool is_first = device == devices.front();
      auto part = std::make_shared<StepCall>();
      part->around = call.around;
      part->num_leading = call.num_leading;
      part->frame = node->name;
      part->max_kept_bytes = call.max_kept_bytes;
      for (const Parts* body : bodies) {
        part->bodies.push_back(body == nullptr ? nullptr : body->graphs.at(device));
      }
      const bool changes = std::any_of(part->bodies.begin(), part->bodies.end(),
                                       [&](const auto& body) { return body == nullptr || changes_state(*body); });
      std::vector<StepEndpoint> given;
      std::vector<StepNodeId> after(controls.begin(), controls.end());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (needs.feeds[i].contains(device)) {
          given.push_back(inputs[i]);
        } else if (changes && !is_handle(fresh.output(inputs[i]).dtype)) {
          after.push_back(inputs[i].node);  // the call begins when it has all of its inputs
        }
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      Node made = part_node(*node, is_first);
      std::vector<std::size_t> outputs;  // of the call, in the part's order
      for (std::size_t i = 0; is_first && i < num_results; ++i) outputs.push_back(i);
      for (std::size_t k = 0; k < call.kept.size(); ++k) {
        const auto [b, result] = call.kept[k];
        if (result < 0 ? !is_first : (*kept_at[b])[static_cast<std::size_t>(result)] != device) continue;
        outputs.push_back(num_results + k);
        part->kept.push_back({b, result < 0 ? -1 : position_among_kept(*kept_at[b], result, device)});
      }
      made.outputs.clear();
      for (const std::size_t output : outputs) made.outputs.push_back(node->outputs[output]);
      const StepNodeId id = fresh.append(std::move(made), static_cast<std::int32_t>(device), given, after);
      fresh.node(id).call = static_cast<std::int32_t>(fresh.calls.size());
      fresh.calls.push_back(std::move(part));
      for (std::size_t i = 0; i < outputs.size(); ++i) now.outputs[outputs[i]] = {id, static_cast<std::int32_t>(i)};
      if (is_first) {
        now.node = id;
      } else {
        now.others.push_back(id);
        if (changes) now.that_change.push_back(id);
      }
    }
    return now;
  }

  static bool is_recursive(const std::shared_ptr<const StepGraph>& body) {
    return body == nullptr || body->recursion >= 0;
  }

  /// The node for a part of a call; it has no results unless it is the first part.
  static Node part_node(Node of, bool is_first) {
    const bool is_known = with_attrs<CallFunction>(of, is_first) || with_attrs<If>(of, is_first) ||
                          with_attrs<Case>(of, is_first) || with_attrs<While>(of, is_first);
    if (!is_known) {
      throw_error(Status::unimplemented("what it calls cannot be on several devices")
                      .with_node(of.op->name, of.name)
                      .with_location(of.where));
    }
    return of;
  }
  template <class Op>
  static bool with_attrs(Node& node, bool is_first) {
    if (node.op != &op_def<Op>) return false;
    typename Op::Attrs attrs = node.attrs_as<Op>();
    attrs.frame = node.name;
    if constexpr (requires { attrs.captured; }) attrs.captured.clear();
    if (!is_first) {
      attrs.output_types.clear();
      attrs.output_shapes.clear();
    }
    node.attrs = reflect::share(std::move(attrs));
    return true;
  }

  bool changes_state(const StepGraph& body) {
    const auto [known, is_new] = changes_.try_emplace(&body, false);
    if (!is_new) return known->second;
    const bool does = std::any_of(body.nodes.begin(), body.nodes.end(), [&](const StepNode& node) {
      const OpRole role = node.op->role;
      if (node.is_fed_only || role == OpRole::send || role == OpRole::recv) return false;
      const StepCall* const call = body.call_of(node);
      if (call == nullptr) return node.op->is_stateful;
      return std::any_of(call->bodies.begin(), call->bodies.end(),
                         [&](const auto& inner) { return inner != nullptr && changes_state(*inner); });
    });
    return changes_[&body] = does;
  }

  // ---- bodies by device ----

  struct Parts {
    std::map<std::size_t, std::shared_ptr<const StepGraph>> graphs;
    std::vector<std::size_t> kept_at;  ///< for each kept value the device that keeps it
  };
  /// Calls of a body mostly have the same needs.
  struct PartsKey {
    const StepGraph* body;
    std::size_t num_results;
    bool is_of_loop, asks;
    std::vector<std::size_t> devices;
    std::vector<Devices> feeds;
    friend bool operator<(const PartsKey& a, const PartsKey& b) {
      return std::tie(a.body, a.num_results, a.is_of_loop, a.asks, a.devices, a.feeds) <
             std::tie(b.body, b.num_results, b.is_of_loop, b.asks, b.devices, b.feeds);
    }
  };

  const Parts& parts_of(const StepNode& node, const StepCall& call, std::size_t b,
                        const std::vector<std::size_t>& devices, const Needs& needs) {
    const bool is_of_loop = node.op->role == OpRole::loop;
    const bool asks = is_of_loop && b == 0;
    const std::size_t num_results = asks ? 1 : num_results_of(node, call);
    const StepGraph& body = *call.bodies[b];
    const auto leading = static_cast<std::ptrdiff_t>(call.num_leading);
    PartsKey key{&body, num_results, is_of_loop, asks, devices, {needs.feeds.begin() + leading, needs.feeds.end()}};
    if (const auto found = parts_.find(key); found != parts_.end()) return found->second;

    BodyEdges edges;
    edges.devices = devices;
    edges.asks = asks;
    edges.first_waits = is_of_loop && !asks;
    for (const Devices& given : key.feeds) {
      // In the order of `devices`, because the other devices get their copies from the first.
      std::vector<std::size_t>& at = edges.feeds_at.emplace_back();
      for (const std::size_t device : devices) {
        if (given.contains(device)) at.push_back(device);
      }
    }
    Parts parts;
    for (std::size_t f = 0; f < body.fetches.size(); ++f) {
      if (f < num_results) {
        edges.fetches_at.push_back(asks ? devices : std::vector{devices.front()});
        continue;
      }
      const StepNode& kept = body.node(body.fetches[f].node);
      parts.kept_at.push_back(is_on_device(kept) ? kept_device(body, body.fetches[f]) : devices.front());
      edges.fetches_at.push_back({parts.kept_at.back()});
    }
    if (body.recursion >= 0) kept_at_of_recursion_[body.recursion] = parts.kept_at;
    std::vector<StepGraph> graphs = partition_body(expand(body), edges, devices_, kernels_);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      graphs[d].recursion = body.recursion;
      parts.graphs[devices[d]] = std::make_shared<const StepGraph>(std::move(graphs[d]));
    }
    return parts_.emplace(std::move(key), std::move(parts)).first->second;
  }

  /// The device where an edge is made: a kept value of a call's bodies comes from the part that keeps it.
  std::size_t kept_device(const StepGraph& body, StepEndpoint edge) {
    const StepNode& node = body.node(edge.node);
    const StepCall* const call = body.call_of(node);
    if (call == nullptr || !is_split(body, node)) return device_of(node);
    const std::size_t num_results = num_results_of(node, *call);
    const auto output = static_cast<std::size_t>(edge.index);
    if (output < num_results) return device_of(node);
    const auto [b, result] = call->kept[output - num_results];
    if (result < 0) return device_of(node);
    if (call->bodies[b] == nullptr) {
      const auto found = kept_at_of_recursion_.find(call->around_of(b));
      return found == kept_at_of_recursion_.end() ? device_of(node) : found->second[static_cast<std::size_t>(result)];
    }
    const StepGraph& inner = *call->bodies[b];
    const bool asks = node.op->role == OpRole::loop && b == 0;
    const StepEndpoint kept = inner.fetches[(asks ? 1 : num_results) + static_cast<std::size_t>(result)];
    return is_on_device(inner.node(kept.node)) ? kept_device(inner, kept) : device_of(node);
  }

  static std::ptrdiff_t position_among_kept(const std::vector<std::size_t>& kept_at, std::ptrdiff_t result,
                                            std::size_t device) {
    return std::count(kept_at.begin(), kept_at.begin() + result, device);
  }

  std::span<const DeviceInfo> devices_;
  std::span<const KernelTables> kernels_;
  SpanFinder finder_;
  bool has_changed_ = false;
  std::set<std::tuple<const StepGraph*, OpRole, bool>> seen_;
  std::map<const StepGraph*, Needs> of_body_;
  std::map<std::int32_t, Needs> of_recursion_;
  std::map<std::int32_t, std::vector<std::size_t>> kept_at_of_recursion_;  ///< of bodies that are, or were, divided
  std::map<PartsKey, Parts> parts_;
  std::map<const StepGraph*, bool> changes_;
};

}  // namespace detail

StepGraph split_calls(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels) {
  if (graph.calls.empty()) return graph;
  detail::SpanFinder finder;
  const auto is_whole = [&](const StepNode& node) {
    if (node.is_fed_only || graph.call_of(node) == nullptr) return true;
    return !finder.spans(graph, node) && !detail::takes_far_handle(graph, node) &&
           !detail::computes_elsewhere(devices, node);
  };
  if (std::all_of(graph.nodes.begin(), graph.nodes.end(), is_whole)) return graph;
  return detail::CallSplitter(devices, kernels).split(graph);
}

}  // namespace dflow
