#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/passes/frames.hpp>
#include <dflow/passes/lower_calls.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/passes/span_finder.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace dflow {

namespace detail {

class CallLowerer {
 public:
  /// Facts about bodies, shared by calls of one function.
  struct Known {
    std::map<std::shared_ptr<const StepGraph>, std::shared_ptr<const StepGraph>> lowered;
    std::map<const StepGraph*, std::size_t> sizes;
    std::map<const StepGraph*, bool> keep_state;
    std::map<const StepGraph*, bool> have_effects;
    SpanFinder spans;
    std::size_t num_nodes = 0;  ///< made so far, in all
    std::size_t max_nodes = max_body_nodes;
    bool inlines_alone = false;  ///< calls that are to be inlined, and nothing else
    FunctionRef<void()>* check = nullptr;

    void count_node() {
      constexpr std::size_t between_checks = 1024;
      if (++num_nodes % between_checks == 0 && check != nullptr) (*check)();
    }
  };

  /// `raises`: for nodes that are lowered in bodies of calls, see `form_frames`.
  CallLowerer(const Raises& raises, Known& known) : raises_(raises), known_(known) {}

  StepGraph lower(const StepGraph& step) {
    fresh_.graph = step.graph;
    fresh_.recursion = step.recursion;
    add_made(step);
    Emitted all(step, {}, true);
    emit(all, {});
    for (const StepEndpoint feed : step.feeds) fresh_.feeds.push_back(all.edge(feed));
    for (const StepEndpoint fetch : step.fetches) fresh_.fetches.push_back(all.edge(fetch));
    for (const StepNodeId target : step.targets) fresh_.targets.push_back(all.end_of(target));
    return std::move(fresh_);
  }

 private:
  /// The new places of the nodes of one graph.
  struct Emitted {
    Emitted(const StepGraph& of, std::vector<StepEndpoint> given, bool is_whole)
        : graph(of), feeds(of.feeds, of.nodes.size()), fed(std::move(given)), is_step(is_whole), now(of.nodes.size()) {}

    StepEndpoint edge(StepEndpoint old) const {
      if (!is_step) {
        if (const std::int32_t feed = feeds.find(old); feed >= 0) return fed[static_cast<std::size_t>(feed)];
      }
      const auto found = outputs.find(old.node);
      return found == outputs.end() ? StepEndpoint{now[old.node], old.index}
                                    : found->second[static_cast<std::size_t>(old.index)];
    }
    /// The node that nodes after the old one come after; none for a node that is only fed.
    StepNodeId end_of(StepNodeId old) const { return now[old]; }

    const StepGraph& graph;
    EdgePositions<StepNodeId> feeds;
    std::vector<StepEndpoint> fed;  ///< of a body: in its place
    bool is_step;
    IndexedVector<StepNodeId, StepNodeId> now;                ///< of lowered nodes: the node that ends them
    std::map<StepNodeId, std::vector<StepEndpoint>> outputs;  ///< of lowered nodes
  };
  /// The node that gives its branch or iteration to a node that reads nothing else of it.
  struct Around {
    StepNodeId pivot = {};
  };
  struct Results {
    std::vector<StepEndpoint> edges;
    std::vector<StepNodeId> targets;
  };

  void add_made(const StepGraph& of) {
    for (const auto& each : of.made) {
      if (std::find(fresh_.made.begin(), fresh_.made.end(), each) == fresh_.made.end()) fresh_.made.push_back(each);
    }
  }

  /// Alive on every side: a constant, or an edge that a loop reads in all iterations (the last one only asks).
  bool is_constant(StepEndpoint edge) const {
    const StepNode& node = fresh_.node(edge.node);
    if (node.op->role == OpRole::enter) return static_cast<const Enter::Attrs*>(node->attrs.get())->is_constant;
    return node.op->role == OpRole::constant && node.num_controls == 0 && !node.is_fed_only;
  }

  /// Adds the pivot as a control if no other input says whether, and when, the node runs. Handles of variables do
  /// not.
  void gate(std::span<const StepEndpoint> inputs, std::vector<StepNodeId>& controls, const Around& around) const {
    const bool is_gated = !controls.empty() || !std::all_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) {
      return is_constant(input) || is_handle(info(input).dtype);
    });
    if (!is_gated && around.pivot.is_valid()) controls.push_back(around.pivot);
  }

  StepNodeId add(const StepNode& like, const OpDef& op, const char* suffix, std::vector<OutputInfo> outputs,
                 std::shared_ptr<const void> attrs, const TypeArgs& types, const std::vector<StepEndpoint>& inputs,
                 const Around& around, std::vector<StepNodeId> controls = {}) {
    Node node;
    node.op = &op;
    node.name = unique(str_cat(like->name, "/", suffix));
    node.types = types;
    node.outputs = std::move(outputs);
    node.attrs = std::move(attrs);
    node.where = like->where;
    gate(inputs, controls, around);
    known_.count_node();
    return fresh_.append(std::move(node), like.placed_on, inputs, controls);
  }

  OutputInfo info(StepEndpoint edge) const { return fresh_.output(edge); }

  StepEndpoint add_identity(const StepNode& like, StepEndpoint x, const Around& around,
                            std::vector<StepNodeId> controls = {}) {
    const OutputInfo of = info(x);
    return {
        add(like, op_def<Identity>, "identity", {of}, nullptr, one_type(of.dtype), {x}, around, std::move(controls)),
        0};
  }
  /// {where the side is false, where it is true}
  std::pair<StepEndpoint, StepEndpoint> add_switch(const StepNode& like, StepEndpoint x, StepEndpoint side,
                                                   const Around& around) {
    const OutputInfo of = info(x);
    const StepNodeId id = add(like, op_def<Switch>, "switch", {of, of}, nullptr, one_type(of.dtype), {x, side}, around);
    return {{id, 0}, {id, 1}};
  }
  StepEndpoint add_merge(const StepNode& like, const std::vector<StepEndpoint>& inputs, const OutputInfo& of,
                         std::vector<StepNodeId> controls = {}) {
    // If another task gets the node, it infers the node's shape again.
    auto attrs = reflect::share(Merge::Attrs{static_cast<std::int64_t>(inputs.size()), of.shape, !of.shape.has_rank()});
    return {add(like, op_def<Merge>, "merge", {of, {DType::int32, Shape{}}}, std::move(attrs), one_type(of.dtype),
                inputs, {}, std::move(controls)),
            0};
  }

  // ---- the nodes of a graph ----

  void emit(Emitted& to, const Around& around) {
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const StepNodeId id : to.graph.nodes.indices()) {
      const StepNode& node = to.graph.node(id);
      if (node.is_fed_only) {
        if (to.is_step) to.now[id] = fresh_.append(node, {}, {});
        continue;
      }
      inputs.clear();
      controls.clear();
      for (const StepEndpoint input : to.graph.inputs_of(node)) inputs.push_back(to.edge(input));
      for (const StepNodeId control : to.graph.controls_of(node)) {
        if (control.is_valid() && to.end_of(control).is_valid()) controls.push_back(to.end_of(control));
      }
      const StepCall* const call = to.graph.call_of(node);
      if (call != nullptr && lower_call(to, id, *call, inputs, controls, around)) continue;
      if (node.op->role != OpRole::constant) gate(inputs, controls, around);
      StepNode here = node;
      if (call != nullptr) {
        here.call = static_cast<std::int32_t>(fresh_.calls.size());
        // A call on several devices stays a call, and so do calls in it.
        const bool spans = !raises_.everywhere && known_.spans.spans(to.graph, node);
        const bool stays = spans || known_.inlines_alone || has_kept_bound(*call);
        fresh_.calls.push_back(stays ? to.graph.calls[static_cast<std::size_t>(node.call)]
                                     : with_lowered_bodies(*call));
      }
      to.now[id] = append(here, inputs, controls);
    }
  }

  /// A body may be lowered more than once, and devices send one another tensors by the names of their nodes.
  StepNodeId append(const StepNode& node, const std::vector<StepEndpoint>& inputs,
                    const std::vector<StepNodeId>& controls) {
    known_.count_node();
    std::string name = unique(node->name);
    if (name == node->name) return fresh_.append(node, inputs, controls);
    Node copy = *node;
    copy.name = std::move(name);
    const StepNodeId id = fresh_.append(std::move(copy), node.placed_on, inputs, controls);
    fresh_.node(id).call = node.call;
    return id;
  }
  std::string unique(std::string name) {
    const int copy = ++num_named_[name];
    return copy == 1 ? name : step_node_copy(name, copy);
  }

  Results emit_body(const StepNode& call, const StepGraph& body, std::vector<StepEndpoint> given,
                    const Around& around) {
    add_made(body);
    for (std::size_t i = 0; i < given.size() && i < body.feeds.size(); ++i) {
      given[i] = with_shape(call, given[i], body.output(body.feeds[i]), around);
    }
    Emitted here(body, std::move(given), false);
    emit(here, around);
    Results results;
    for (const StepEndpoint fetch : body.fetches) {
      const StepEndpoint edge = here.edge(fetch);
      results.edges.push_back(around.pivot.is_valid() && is_constant(edge) ? add_identity(call, edge, around) : edge);
    }
    for (const StepNodeId target : body.targets) {
      if (here.end_of(target).is_valid()) results.targets.push_back(here.end_of(target));
    }
    // A body runs whole: a node that waits for it, or reads one of its results, must find the work of all its nodes
    // done.
    if (has_effects(body)) {
      for (const StepEndpoint edge : results.edges) {
        if (!is_handle(info(edge).dtype)) results.targets.push_back(edge.node);
      }
      std::sort(results.targets.begin(), results.targets.end());
      results.targets.erase(std::unique(results.targets.begin(), results.targets.end()), results.targets.end());
    }
    return results;
  }

  std::shared_ptr<const StepCall> with_lowered_bodies(const StepCall& call) {
    auto lowered = std::make_shared<StepCall>(call);
    for (std::shared_ptr<const StepGraph>& body : lowered->bodies) {
      if (body == nullptr) continue;
      if (const auto found = known_.lowered.find(body); found != known_.lowered.end()) {
        body = found->second;
        continue;
      }
      StepGraph fresh = prune(CallLowerer(raises_, known_).lower(*body));
      form_frames(fresh, raises_);
      body = known_.lowered.emplace(body, std::make_shared<const StepGraph>(std::move(fresh))).first->second;
    }
    return lowered;
  }

  // ---- calls ----

  bool lower_call(Emitted& to, StepNodeId id, const StepCall& call, const std::vector<StepEndpoint>& inputs,
                  const std::vector<StepNodeId>& controls, const Around& around) {
    const StepNode& node = to.graph.node(id);
    if (calls_itself(call) || !can_keep(node, call) || call.bodies.size() > max_alternatives) return false;
    if (known_.inlines_alone ? !call.is_inlined : raises_.is_own_memory(node.placed_on) || has_kept_bound(call)) {
      return false;
    }
    // A kept value stays on the device that has made it; the parts of a call see to that.
    if ((!raises_.everywhere || !call.kept.empty()) && known_.spans.spans(to.graph, node)) return false;
    const std::size_t size = size_of(node, call);
    if (size > max_call_nodes || known_.num_nodes + size > known_.max_nodes) return false;
    if (node.op->role == OpRole::call) {
      lower_function(to, id, call, inputs, controls, around);
    } else if (node.op->role == OpRole::branch) {
      lower_branch(to, id, call, inputs, controls, around);
    } else if (node.op->role == OpRole::loop) {
      lower_loop(to, id, call, inputs, controls, around);
    } else {
      return false;
    }
    return true;
  }

  /// The lists of frames have no bound, nor have the lists of loops in them.
  static bool has_kept_bound(const StepCall& call) { return call.max_kept_bytes >= 0 && !call.kept.empty(); }

  /// Kept values are made by their body itself, alive. For a branch that is not taken a substitute stands for them.
  static bool can_keep(const StepNode& node, const StepCall& call) {
    if (call.kept.empty()) return true;
    const std::size_t num_results = num_own_results(node, call);
    for (std::size_t k = 0; k < call.kept.size(); ++k) {
      const bool is_handle = node->outputs[num_results + k].dtype == DType::resource;
      if (is_handle && node.op->role == OpRole::branch) return false;
    }
    return std::none_of(call.bodies.begin(), call.bodies.end(), [](const auto& body) { return has_raw_form(*body); });
  }
  // Functions that call others more than once have more nodes in the raw form than anybody has built.
  static constexpr std::size_t max_call_nodes = std::size_t{1} << 14;
  static constexpr std::size_t max_alternatives = 256;  ///< each is a branch inside of the one before

  /// About how many nodes the call becomes.
  std::size_t size_of(const StepNode& node, const StepCall& call) {
    std::size_t size = 4 * (1 + node.num_inputs + node->outputs.size()) * call.bodies.size();
    for (const std::shared_ptr<const StepGraph>& body : call.bodies) size += body == nullptr ? 0 : size_of(*body);
    return size;
  }
  // NOLINTNEXTLINE(misc-no-recursion): bodies are nested no deeper than `attach_bodies` allows.
  std::size_t size_of(const StepGraph& body) {
    if (const auto found = known_.sizes.find(&body); found != known_.sizes.end()) return found->second;
    std::size_t size = body.nodes.size();
    for (const StepNode& node : body.nodes) {
      const StepCall* const call = node.is_fed_only ? nullptr : body.call_of(node);
      if (call == nullptr || calls_itself(*call)) continue;
      const std::size_t of_call = size_of(node, *call);
      if (of_call <= max_call_nodes) size += of_call;
    }
    known_.sizes.emplace(&body, size);
    return size;
  }

  static bool has_raw_form(const StepGraph& body) {
    return std::any_of(body.nodes.begin(), body.nodes.end(), [](const StepNode& node) {
      return !node.is_fed_only && (passes_on(node.op->role) || node.op->role == OpRole::frames);
    });
  }

  static std::size_t num_own_results(const StepNode& node, const StepCall& call) {
    return node->outputs.size() - call.kept.size();
  }

  /// The inputs, after the nodes that the call waits for.
  std::vector<StepEndpoint> given(const StepNode& node, std::span<const StepEndpoint> inputs,
                                  const std::vector<StepNodeId>& controls, const Around& around) {
    std::vector<StepEndpoint> all(inputs.begin(), inputs.end());
    if (controls.empty()) return all;
    for (StepEndpoint& each : all) {
      if (!is_handle(info(each).dtype)) each = add_identity(node, each, around, controls);
    }
    return all;
  }

  static StepEndpoint bool_of(StepNodeId id) { return {id, 0}; }

  StepEndpoint add_true(const StepNode& like, const Around& around, std::vector<StepNodeId> controls = {}) {
    return add_identity(like, add_constant(like, "true", Tensor<bool>(true)), around, std::move(controls));
  }

  /// Makes readers of the edges run after the node.
  void wait_for(StepNodeId end, const StepNode& like, std::vector<StepEndpoint>& edges, const Around& around) {
    for (StepEndpoint& edge : edges) {
      if (!is_handle(info(edge).dtype)) edge = add_identity(like, edge, around, {end});
    }
  }

  void lower_function(Emitted& to, StepNodeId id, const StepCall& call, const std::vector<StepEndpoint>& inputs,
                      const std::vector<StepNodeId>& controls, const Around& around) {
    const StepNode& node = to.graph.node(id);
    const StepEndpoint begun = add_true(node, around, controls);
    Results results = emit_body(node, *call.bodies[0], given(node, inputs, controls, around), {begun.node});
    to.now[id] = add_identity(node, begun, around, results.targets).node;
    if (!results.targets.empty()) wait_for(to.now[id], node, results.edges, around);
    to.outputs[id] = std::move(results.edges);
  }

  void lower_branch(Emitted& to, StepNodeId id, const StepCall& call, const std::vector<StepEndpoint>& inputs,
                    const std::vector<StepNodeId>& controls, const Around& around) {
    const StepNode& node = to.graph.node(id);
    const StepEndpoint chooses = add_identity(node, inputs[0], around, controls);
    const std::vector<StepEndpoint> arguments = given(node, std::span(inputs).subspan(1), controls, around);
    Results results = call.bodies.size() == 1
                          ? emit_alternative(node, call, 0, arguments, {add_identity(node, chooses, around).node})
                          : emit_choice(node, call, 0, chooses, arguments, around);
    const bool has_more = results.edges.size() > 1 || results.targets.size() > 1;
    if (results.targets.size() != 1) {
      results.targets = {add_identity(node, chooses, around, results.targets).node};
    }
    to.now[id] = results.targets[0];
    if (call.bodies.size() == 1 && has_more) wait_for(to.now[id], node, results.edges, around);
    to.outputs[id] = std::move(results.edges);
  }

  /// Emits the first body from `b` on that `chooses` selects, else the last; one target says that it is done.
  Results emit_choice(const StepNode& node, const StepCall& call, std::size_t b, StepEndpoint chooses,
                      const std::vector<StepEndpoint>& given, const Around& around) {
    const StepEndpoint side =
        info(chooses).dtype == DType::boolean ? chooses : add_is(node, chooses, static_cast<std::int32_t>(b), around);
    const auto [not_taken, taken] = add_switch(node, side, side, around);
    const Around otherwise{add_identity(node, not_taken, around).node}, then{add_identity(node, taken, around).node};
    std::vector<StepEndpoint> of_then, of_else;
    for (const StepEndpoint input : given) {
      const auto [off, on] = add_switch(node, input, side, around);
      of_else.push_back(off);
      of_then.push_back(on);
    }
    const Results first = emit_alternative(node, call, b, of_then, then);
    const Results second =
        b + 2 == call.bodies.size()
            ? emit_alternative(node, call, b + 1, of_else, otherwise)
            : emit_choice(node, call, b + 1, add_switch(node, chooses, side, around).first, of_else, otherwise);
    const StepEndpoint first_end = add_identity(node, bool_of(then.pivot), around, first.targets);
    const StepEndpoint second_end = add_identity(node, bool_of(otherwise.pivot), around, second.targets);
    const StepEndpoint end = add_merge(node, {first_end, second_end}, info(first_end));
    Results results;
    results.targets.push_back(end.node);
    for (std::size_t r = 0; r < node->outputs.size(); ++r) {
      results.edges.push_back(add_merge(node, {first.edges[r], second.edges[r]}, node->outputs[r], {end.node}));
    }
    return results;
  }

  /// A body, with an empty substitute for values that are kept of another body.
  Results emit_alternative(const StepNode& node, const StepCall& call, std::size_t b,
                           const std::vector<StepEndpoint>& given, const Around& around) {
    const std::size_t num_results = num_own_results(node, call);
    Results all = emit_body(node, *call.bodies[b], given, around);
    const std::vector<StepEndpoint> of_body(all.edges.begin() + static_cast<std::ptrdiff_t>(num_results),
                                            all.edges.end());
    all.edges.resize(num_results);
    for (std::size_t k = 0; k < call.kept.size(); ++k) {
      const auto [body, result] = call.kept[k];
      all.edges.push_back(call.bodies[body] == call.bodies[b]
                              ? of_body[static_cast<std::size_t>(result)]
                              : add_nothing(node, node->outputs[num_results + k].dtype, around));
    }
    return all;
  }

  /// Kernels rely on the shapes that a body declares for its arguments.
  StepEndpoint with_shape(const StepNode& like, StepEndpoint x, const OutputInfo& declared, const Around& around) {
    const OutputInfo of = info(x);
    if (is_handle(of.dtype) || of.dtype != declared.dtype || !declared.shape.has_rank() ||
        declared.shape.generalized_with(of.shape) == declared.shape) {
      return x;
    }
    return {add(like, op_def<EnsureShape>, "argument", {declared}, reflect::share(EnsureShape::Attrs{declared.shape}),
                one_type(of.dtype), {x}, around),
            0};
  }

  StepEndpoint add_constant(const StepNode& like, const char* suffix, AnyTensor value) {
    OutputInfo of{value.dtype(), value.shape()};
    const TypeArgs types = one_type(value.dtype());
    auto attrs = reflect::share(Const::Attrs{std::move(value)});
    return {add(like, op_def<Const>, suffix, {std::move(of)}, std::move(attrs), types, {}, {}), 0};
  }
  StepEndpoint add_empty_list(const StepNode& like, const Around& around) {
    return {add(like, op_def<EmptyTensorList>, "empty", {{DType::variant, PartialShape::unknown()}}, nullptr, {}, {},
                around),
            0};
  }
  StepEndpoint add_nothing(const StepNode& like, DType dtype, const Around& around) {
    if (dtype == DType::variant) return add_empty_list(like, around);
    return add_identity(like, add_constant(like, "nothing", AnyTensor(dtype, Shape{0})), around);
  }
  StepEndpoint add_is(const StepNode& like, StepEndpoint number, std::int32_t wanted, const Around& around) {
    const StepEndpoint constant = add_constant(like, "number", Tensor<std::int32_t>(wanted));
    return {add(like, op_def<Equal>, "is", {{DType::boolean, Shape{}}}, nullptr, one_type(DType::int32),
                {number, constant}, around),
            0};
  }

  StepEndpoint add_enter(const StepNode& like, StepEndpoint x, const Enter::Attrs& attrs, const Around& around) {
    const OutputInfo of = info(x);
    return {
        add(like, op_def<Enter>, "enter", {of}, reflect::share(Enter::Attrs(attrs)), one_type(of.dtype), {x}, around),
        0};
  }

  void lower_loop(Emitted& to, StepNodeId id, const StepCall& call, const std::vector<StepEndpoint>& inputs,
                  const std::vector<StepNodeId>& controls, const Around& around) {
    const StepNode& node = to.graph.node(id);
    const std::size_t num_variables = num_own_results(node, call);
    const bool overlaps = !keeps_state(*call.bodies[0]) && !keeps_state(*call.bodies[1]);
    Enter::Attrs frame{str_cat(node->name, "/", ++num_frames_), false, overlaps ? parallel_iterations(*node) : 1};
    Enter::Attrs invariant = frame;
    invariant.is_constant = true;

    // A variable of the loop's own says that the work of the body is done.
    const StepEndpoint begun = add_true(node, around, controls);
    const StepEndpoint token = add_merge(node, {add_enter(node, begun, frame, around)}, info(begun));
    const std::vector<StepEndpoint> first = given(node, inputs, controls, around);
    std::vector<StepEndpoint> variables, captures, kept_variables;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool varies = i < num_variables;
      const StepEndpoint entered = add_enter(node, first[i], varies ? frame : invariant, around);
      if (!varies) {
        captures.push_back(entered);
        continue;
      }
      const StepGraph& body = *call.bodies[1];
      variables.push_back(add_merge(node, {entered}, body.output(body.feeds[i])));
    }
    // Kept values are variables that functions do not see.
    for (const StepCall::Kept& kept : call.kept) {
      const StepEndpoint none =
          kept.result < 0 ? add_constant(node, "none", Tensor<std::int64_t>(0)) : add_empty_list(node, {begun.node});
      kept_variables.push_back(add_merge(node, {add_enter(node, none, frame, {begun.node})}, info(none)));
    }
    const auto with_captures = [&](std::vector<StepEndpoint> values) {
      values.insert(values.end(), captures.begin(), captures.end());
      return values;
    };
    const Around asks{add_identity(node, token, {}).node};
    Results asked = emit_body(node, *call.bodies[0], with_captures(variables), asks);
    asked.targets.push_back(asks.pivot);  // so that the loop has the variable that waits for the body's work
    const StepEndpoint goes_on = {add(node, op_def<LoopCond>, "loop_cond", {{DType::boolean, Shape{}}}, nullptr, {},
                                      {asked.edges[0]}, asks, asked.targets),
                                  0};
    const auto [ended, going] = add_switch(node, token, goes_on, asks);
    const Around runs{add_identity(node, going, {}).node};
    std::vector<StepEndpoint> last, now;
    std::vector<StepEndpoint> kept_last, kept_now;
    const auto add_sides = [&](std::span<const StepEndpoint> of, std::vector<StepEndpoint>& off,
                               std::vector<StepEndpoint>& on) {
      for (const StepEndpoint variable : of) {
        const auto [at_end, inside] = add_switch(node, variable, goes_on, asks);
        off.push_back(at_end);
        on.push_back(inside);
      }
    };
    add_sides(variables, last, now);
    add_sides(kept_variables, kept_last, kept_now);
    const Results next = emit_body(node, *call.bodies[1], with_captures(std::move(now)), runs);
    add_next(node, add_identity(node, bool_of(runs.pivot), runs, next.targets), token);
    for (std::size_t i = 0; i < num_variables; ++i) add_next(node, next.edges[i], variables[i]);
    for (std::size_t k = 0; k < kept_now.size(); ++k) {
      const std::ptrdiff_t result = call.kept[k].result;
      add_next(node,
               result < 0
                   ? add_one(node, kept_now[k], runs)
                   : add_push(node, kept_now[k], next.edges[num_variables + static_cast<std::size_t>(result)], runs),
               kept_variables[k]);
    }
    last.insert(last.end(), kept_last.begin(), kept_last.end());

    to.now[id] = add_identity(node, add_exit(node, ended), around).node;  // outside, where a step may end
    std::vector<StepEndpoint>& outputs = to.outputs[id];
    for (const StepEndpoint value : last) outputs.push_back(add_exit(node, value));
    if (num_variables > 1 && has_effects(*call.bodies[1])) wait_for(to.now[id], node, outputs, around);
  }

  StepEndpoint add_one(const StepNode& like, StepEndpoint count, const Around& around) {
    const StepEndpoint one = add_constant(like, "one", Tensor<std::int64_t>(1));
    return {add(like, op_def<Add>, "count", {{DType::int64, Shape{}}}, nullptr, one_type(DType::int64), {count, one},
                around),
            0};
  }
  StepEndpoint add_push(const StepNode& like, StepEndpoint list, StepEndpoint value, const Around& around) {
    return {add(like, op_def<KeptListPush>, "keep", {{DType::variant, PartialShape::unknown()}}, nullptr, {},
                {list, value}, around),
            0};
  }

  void add_next(const StepNode& like, StepEndpoint value, StepEndpoint merge) {
    add(like, op_def<NextIteration>, "next", {}, nullptr, one_type(info(value).dtype), {value, merge}, {});
  }
  StepEndpoint add_exit(const StepNode& like, StepEndpoint value) {
    const OutputInfo of = info(value);
    return {add(like, op_def<Exit>, "exit", {of}, nullptr, one_type(of.dtype), {value}, {}), 0};
  }

  static std::int64_t parallel_iterations(const Node& loop) {
    for (const AttrField& field : loop.op->attr_fields) {
      if (field.kind == AttrKind::integer) return std::get<std::int64_t>(attr_of(loop, field));
    }
    return 1;
  }

  /// Frames have an end, so a call that calls itself stays a call.
  static bool calls_itself(const StepCall& call) {
    return std::any_of(call.bodies.begin(), call.bodies.end(), [](const std::shared_ptr<const StepGraph>& body) {
      return body == nullptr || body->recursion >= 0;
    });
  }

  /// Its iterations run one after the other, then.
  // NOLINTNEXTLINE(misc-no-recursion): bodies are nested no deeper than `attach_bodies` allows.
  bool keeps_state(const StepGraph& body) {
    if (const auto found = known_.keep_state.find(&body); found != known_.keep_state.end()) return found->second;
    const bool keeps = std::any_of(body.nodes.begin(), body.nodes.end(), [&](const StepNode& node) {
      if (node.is_fed_only) return false;
      const StepCall* const call = body.call_of(node);
      if (call == nullptr) return node.op->is_stateful;
      return std::any_of(call->bodies.begin(), call->bodies.end(),
                         [&](const auto& inner) { return inner == nullptr || keeps_state(*inner); });
    });
    known_.keep_state.emplace(&body, keeps);
    return keeps;
  }

  /// Whether something in it does more than to give its results, and to read variables.
  // NOLINTNEXTLINE(misc-no-recursion): bodies are nested no deeper than `attach_bodies` allows.
  bool has_effects(const StepGraph& body) {
    if (const auto found = known_.have_effects.find(&body); found != known_.have_effects.end()) return found->second;
    const bool has = std::any_of(body.nodes.begin(), body.nodes.end(), [&](const StepNode& node) {
      if (node.is_fed_only) return false;
      const StepCall* const call = body.call_of(node);
      const OpRole role = node.op->role;
      if (call == nullptr) {
        return node.op->is_stateful && role != OpRole::variable && role != OpRole::read_variable;
      }
      return std::any_of(call->bodies.begin(), call->bodies.end(),
                         [&](const auto& inner) { return inner == nullptr || has_effects(*inner); });
    });
    known_.have_effects.emplace(&body, has);
    return has;
  }

  const Raises& raises_;
  StepGraph fresh_;
  int num_frames_ = 0;
  std::unordered_map<std::string, int> num_named_;
  Known& known_;
};

}  // namespace detail

void lower_calls(StepGraph& step, const Raises& raises, std::size_t max_nodes, FunctionRef<void()>* check) {
  // Nodes left without a reader would stay in frames that have ended.
  if (step.calls.empty()) return;
  detail::CallLowerer::Known known;
  known.max_nodes = max_nodes;
  known.check = check;
  step = prune(detail::CallLowerer(raises, known).lower(step));
}

bool inline_calls(StepGraph& step, std::size_t max_nodes, FunctionRef<void()>* check) {
  const bool is_wanted =
      std::any_of(step.calls.begin(), step.calls.end(), [](const auto& call) { return call->is_inlined; });
  if (!is_wanted) return false;
  const Raises raises;
  detail::CallLowerer::Known known;
  known.max_nodes = max_nodes;
  known.check = check;
  known.inlines_alone = true;
  step = prune(detail::CallLowerer(raises, known).lower(step));
  return true;
}

}  // namespace dflow
