#pragma once

#include <dflow/autodiff/call_gradients.hpp>
#include <dflow/autodiff/loop_sums.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/function_builders.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/compare.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

namespace dflow::detail {

/// A function, and the scope in which a call of it is being differentiated. The function may call itself inside its
/// body: the gradient of each of the inner calls is a call too.
struct OpenGradient final : ScopeExtension {
  OpenGradient(NodeId of, std::optional<FunctionHandle> known, std::shared_ptr<OpenGradient> around)
      : function(of), gradient(std::move(known)), outer(std::move(around)) {}

  NodeId function;
  std::optional<FunctionHandle> gradient;  ///< once there is one
  std::shared_ptr<OpenGradient> outer;
};

/// Restores the parts of the shape that may have been lost on the way.
inline AnyOutput with_shape(const AnyOutput& x, const PartialShape& shape) {
  if (is_handle(x.dtype()) || shape == x.shape() || !shape.has_rank()) return x;
  return build<EnsureShape>({x}, {.shape = shape});
}

/// Gives the body of a gradient the edges that it reads from the bodies of a call. The gradient stands outside of
/// them.
class KeptEdges final : public GraphStore::ForeignEdges {
 public:
  KeptEdges(GraphStore& graph, NodeId call) : graph_(graph), call_(call) {
    for (const std::string& name : called_functions(node())) add(name);
    captured_ = captured_edges(graph_, node(), true);
    if (!captured_.empty() && captured_.size() + parts_[0].arguments.size() != node().inputs.size()) {
      throw_error(Status::invalid_argument(str_cat("it says of ", captured_.size(), " captures what they stand for")));
    }
  }

  const Node& node() const { return graph_.node(call_); }
  NodeId function(std::size_t i) const { return functions_.at(i); }
  std::size_t num_functions() const noexcept { return functions_.size(); }
  const GraphStore::Function& parts(std::size_t i) const { return parts_.at(i); }
  /// The edges in the call's body that its captures stand for. Empty: they stand for its inputs.
  std::span<const Endpoint> captured() const noexcept { return captured_; }

  /// Until the guard goes, all nodes built in the body that was begun read the call's bodies through this object.
  /// `iteration`: for a loop, the iteration of the loop that the body reads.
  [[nodiscard]] ScopeGuard enter(const AnyOutput& iteration = {}) {
    GraphStore::Scope scope = graph_.scope();
    outer_ = scope.foreign;
    scope.foreign = std::shared_ptr<KeptEdges>(std::shared_ptr<void>(), this);  // lives as long as the guard
    iteration_ = iteration;
    body_ = scope;
    brought_.clear();
    return graph_.enter(std::move(scope));
  }

  /// Edges that leave the body that is being built.
  AnyOutput seen(const AnyOutput& edge) {
    return graph_.is_inside(body_.function, edge.node().function) ? edge : bring(edge);
  }

  AnyOutput bring(const AnyOutput& edge) override {
    const NodeId of = edge.node().function;
    if (std::find(functions_.begin(), functions_.end(), of) == functions_.end()) {
      const auto found = std::find(captured_.begin(), captured_.end(), edge.endpoint());
      if (found != captured_.end()) {
        const std::size_t input = parts_[0].arguments.size() + static_cast<std::size_t>(found - captured_.begin());
        return out_of_call(AnyOutput(&graph_, node().inputs[input]));
      }
      return outer_ == nullptr ? edge : outer_->bring(edge);
    }
    const auto key = std::pair(edge.node_id(), edge.endpoint().index);
    if (const auto found = brought_.find(key); found != brought_.end()) return found->second;
    const AnyOutput made = make(edge);
    brought_.emplace(key, made);
    return made;
  }

  std::size_t depth() const noexcept override { return 1 + (outer_ == nullptr ? 0 : outer_->depth()); }
  std::size_t count_call() noexcept override { return outer_ == nullptr ? ++num_calls_ : outer_->count_call(); }

  /// How many iterations the loop has had, for nodes built in the current scope.
  AnyOutput count() { return out_of_call(build_beside<KeptCount>({}, {})); }

 private:
  /// Errors: InvalidArgument unless the call can run it.
  void add(const std::string& name) {
    const NodeId begin = graph_.find_appended(name);
    const GraphStore::Function parts = require_function(graph_, begin, name);
    const bool asks = node().op->role == OpRole::loop && functions_.empty();
    const std::size_t num_given = node().inputs.size() - (node().op->role == OpRole::branch ? 1 : 0);
    const std::size_t num_results = graph_.node(parts.results).inputs.size();
    if (parts.arguments.size() > num_given || num_results != (asks ? 1 : node().outputs.size())) {
      throw_error(
          Status::invalid_argument(str_cat("function '", name, "' takes ", parts.arguments.size(), " arguments of ",
                                           num_given, ", and gives ", num_results, " results")));
    }
    functions_.push_back(begin);
    parts_.push_back(parts);
  }

  template <class O>
  AnyOutput build_beside(KeptValueAttrs attrs, const TypeArgs& types) {
    GraphStore::Scope scope = graph_.scope();
    scope.function = node().function;
    scope.control_inputs.clear();
    scope.foreign = nullptr;
    scope.device = node().device;
    scope.device_rule = nullptr;
    scope.colocated_with = node().colocated_with;
    const ScopeGuard beside = graph_.enter(std::move(scope));
    return build<O>(graph_, std::vector<AnyOutput>{AnyOutput(&graph_, {call_, 0})}, std::move(attrs), {}, types);
  }

  /// An edge that was built beside the call may be in another body that the current scope does not see.
  AnyOutput out_of_call(const AnyOutput& edge) {
    if (graph_.is_inside(graph_.scope().function, edge.node().function) || outer_ == nullptr) return edge;
    return outer_->bring(edge);
  }

  AnyOutput make(const AnyOutput& edge) {
    const Node& source = edge.node();
    // Builds in the body itself, also for a scope inside of it: the whole body sees the edge.
    GraphStore::Scope scope = body_;
    scope.where = graph_.scope().where;
    scope.foreign = nullptr;
    // A node that reads a list is placed where the list is.
    scope.device.clear();
    scope.device_rule = nullptr;
    scope.colocated_with = {};
    const ScopeGuard inside = graph_.enter(std::move(scope));
    if (source.op->role == OpRole::argument && node().op->role == OpRole::call) {
      return out_of_call(AnyOutput(&graph_, node().inputs.at(argument_number(source))));
    }
    if (source.op->role == OpRole::constant) {
      return AnyOutput(&graph_,
                       {append_node(graph_, {source.op, {}, source.types, source.attrs, {}, source.where}), 0});
    }
    TypeArgs types;
    types.push_back(edge.dtype());
    const KeptValueAttrs attrs{source.name, edge.endpoint().index};
    if (node().op->role != OpRole::loop) {
      return with_shape(out_of_call(build_beside<KeptValue>(attrs, types)), edge.shape());
    }
    const std::vector<AnyOutput> element{out_of_call(build_beside<KeptList>(attrs, {})), iteration_};
    if (edge.dtype() == DType::resource) return build<KeptHandleElement>(graph_, element);
    if (edge.dtype() == DType::variant) return build<KeptListElement>(graph_, element);
    return build<KeptElement>(graph_, element, {.shape = edge.shape()}, {}, types);
  }

  GraphStore& graph_;
  const NodeId call_;
  std::vector<NodeId> functions_;
  std::vector<GraphStore::Function> parts_;
  std::vector<Endpoint> captured_;
  std::shared_ptr<GraphStore::ForeignEdges> outer_;
  std::size_t num_calls_ = 0;  ///< of the outermost
  GraphStore::Scope body_;
  AnyOutput iteration_;
  std::map<std::pair<NodeId, std::int32_t>, AnyOutput> brought_;
};

/// The gradient of one call.
class CallGradient {
 public:
  CallGradient(GraphStore& graph, NodeId call, std::span<const AnyOutput> dys, std::span<const KeptGradient> kept,
               const std::vector<bool>& is_wanted, std::span<const Endpoint> constants, const GradientOptions& options)
      : graph_(graph),
        call_(call),
        edges_(graph, call),
        dys_(dys),
        kept_(kept),
        constants_(constants),
        options_{.aggregation = options.aggregation, .gate_gradients = options.gate_gradients} {
    constexpr std::size_t max_depth = 64;  // each makes the nodes' names longer
    const Node& node = graph.node(call);
    if (const auto& around = graph.scope().foreign; around != nullptr && around->depth() >= max_depth) {
      throw_error(Status::resource_exhausted(
          str_cat("calls in bodies of calls are differentiated no deeper than ", max_depth, " levels")));
    }
    // If functions call others twice, each level has twice as many calls. A large graph may have many.
    const std::size_t max_calls = std::max(std::size_t{1} << 12, call.position() / 4);
    if (graph.scope().foreign != nullptr && graph.scope().foreign->count_call() > max_calls) {
      throw_error(
          Status::resource_exhausted(str_cat("of a call in which there are more than ", max_calls,
                                             " others, each counted as often as it is called, no gradient is built")));
    }
    num_leading_ = node.op->role == OpRole::branch ? 1 : 0;
    for (std::size_t i = num_leading_; i < node.inputs.size(); ++i) {
      if (is_wanted[i] && is_differentiable(input(i).dtype())) wanted_.push_back(i);
    }
    for (std::size_t i = num_inputs(); i < num_inputs() + constants_.size(); ++i) {
      if (is_differentiable(input(i).dtype())) wanted_.push_back(i);
    }
  }

  std::vector<AnyOutput> build() {
    std::vector<AnyOutput> dxs(num_inputs() + constants_.size());
    if (wanted_.empty()) return dxs;
    if (graph_.node(call_).op->role == OpRole::call) return build_call(std::move(dxs));
    return build_of_bodies(std::move(dxs));
  }

 private:
  std::vector<AnyOutput> build_of_bodies(std::vector<AnyOutput> dxs) {
    const bool is_loop = graph_.node(call_).op->role == OpRole::loop;
    const BuiltNode gradient = is_loop ? build_loop() : build_branch();
    if (is_loop) return loop_gradients(gradient, std::move(dxs));
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      dxs[wanted_[w]] = with_shape(gradient.output(static_cast<int>(w)), input(wanted_[w]).shape());
    }
    return dxs;
  }

  // ---- functions that call themselves ----

  /// A call inside of a body may call a function with a gradient that is being built: then it calls that gradient.
  std::vector<AnyOutput> build_call(std::vector<AnyOutput> dxs) {
    const NodeId function = edges_.function(0);
    const std::shared_ptr<OpenGradient> open = find_open(function);
    const bool is_own_call = open != nullptr && open->gradient && graph_.node(call_).function == open->gradient->begin;
    if (open == nullptr || is_own_call || !kept_.empty()) {
      const ScopeGuard inside = enter_open(function, open == nullptr ? std::nullopt : open->gradient);
      return build_of_bodies(std::move(dxs));
    }
    if (!open->gradient) open->gradient = define_gradient(function);
    return call_gradient(*open->gradient, std::move(dxs));
  }

  ScopeGuard enter_open(NodeId function, std::optional<FunctionHandle> gradient) {
    GraphStore::Scope scope = graph_.scope();
    scope.extensions.set(
        std::make_shared<OpenGradient>(function, std::move(gradient), scope.extensions.find<OpenGradient>()));
    return graph_.enter(std::move(scope));
  }

  std::shared_ptr<OpenGradient> find_open(NodeId function) const {
    for (auto open = graph_.scope().extensions.find<OpenGradient>(); open != nullptr; open = open->outer) {
      if (open->function == function) return open;
      // A function that is part of that function's body is a different function in each call of it.
      if (graph_.is_inside(graph_.node(function).function, open->function)) break;
    }
    return nullptr;
  }

  /// And constants behind them.
  std::vector<std::size_t> differentiable_inputs() const {
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < num_inputs() + constants_.size(); ++i) {
      if (is_differentiable(input(i).dtype())) inputs.push_back(i);
    }
    return inputs;
  }

  /// Arguments: the arguments of the function, then the gradients of all results that have any. Results: the gradients
  /// of all arguments, captures and constants that have any. It computes the function again, for the values that its
  /// body needs.
  FunctionHandle define_gradient(NodeId function) {
    const GraphStore::Function& parts = edges_.parts(0);
    const std::size_t num_arguments = parts.arguments.size();
    FunctionHandle forward{&graph_, function, graph_.node(function).name, {}, {}, {}, {}};
    Recursion known;
    for (const NodeId argument : parts.arguments) {
      const OutputInfo& info = graph_.node(argument).outputs[0];
      forward.argument_types.push_back(info.dtype);
      forward.argument_shapes.push_back(info.shape);
    }
    for (std::size_t i = num_arguments; i < graph_.node(call_).inputs.size(); ++i) {
      forward.captures.push_back(inside(0, i).endpoint());
    }
    known.argument_types = forward.argument_types;
    known.argument_shapes = forward.argument_shapes;
    known.captures = forward.captures;
    for (const OutputInfo& result : graph_.node(call_).outputs) {
      forward.result_types.push_back(result.dtype);
      if (!is_differentiable(result.dtype)) continue;
      known.argument_types.push_back(result.dtype);
      known.argument_shapes.push_back(PartialShape::unknown());
    }
    const std::vector<std::size_t> of = differentiable_inputs();
    for (const std::size_t i : of) {
      const AnyOutput x = i < graph_.node(call_).inputs.size() ? inside(0, i) : input(i);
      known.result_types.push_back(x.dtype());
      known.result_shapes.push_back(x.dtype() == DType::variant ? PartialShape::unknown() : x.shape());
    }
    const auto build_it = [&](const FunctionHandle& self, std::span<const AnyOutput> given) {
      const ScopeGuard inside_of = enter_open(function, self);
      const BuiltNode y = forward.call(given.first(num_arguments), {});
      std::vector<AnyOutput> ys, xs, stops(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(num_arguments));
      for (const Endpoint capture : forward.captures) stops.push_back(edge(capture));
      for (std::size_t o = 0; o < forward.result_types.size(); ++o) {
        if (is_differentiable(forward.result_types[o])) ys.push_back(y.output(static_cast<int>(o)));
      }
      std::size_t num_given = 0;
      for (const std::size_t i : of) {
        num_given += i < stops.size() ? 1 : 0;
        xs.push_back(i < stops.size() ? stops[i] : input(i));
      }
      const std::vector<Gradient> all =
          gradients_in_body(ys, xs, num_given, options_of(given.subspan(num_arguments), stops));
      BodyResults results;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        results.edges.push_back(with_shape(densify(all[i], xs[i]), known.result_shapes[i]));
      }
      return results;
    };
    // Beside the function, in any body that calls it.
    GraphStore::Scope scope = graph_.scope();
    scope.function = graph_.node(function).function;
    scope.foreign = nullptr;
    scope.control_inputs.clear();
    const ScopeGuard beside = graph_.enter(std::move(scope));
    return define_recursion(graph_, "gradient", known, build_it, {});
  }

  std::vector<AnyOutput> call_gradient(const FunctionHandle& gradient, std::vector<AnyOutput> dxs) const {
    const std::size_t num_arguments = edges_.parts(0).arguments.size();
    std::vector<AnyOutput> given;
    for (std::size_t i = 0; i < num_arguments; ++i) given.push_back(input(i));
    for (std::size_t o = 0; o < dys_.size(); ++o) {
      const AnyOutput y = edge({call_, static_cast<std::int32_t>(o)});
      if (is_differentiable(y.dtype())) given.push_back(dys_[o].is_valid() ? dys_[o] : zero_gradient(y));
    }
    const BuiltNode node = gradient.call(given, {});
    int next = 0;
    for (const std::size_t i : differentiable_inputs()) dxs[i] = with_shape(node.output(next++), input(i).shape());
    return dxs;
  }

  static bool is_differentiable(DType dtype) {
    return is_floating(dtype) || is_complex(dtype) || dtype == DType::variant;
  }
  /// For the edges of a body.
  GradientOptions options_of(std::span<const AnyOutput> grad_ys, std::span<const AnyOutput> stop_gradients) const {
    GradientOptions options = options_;
    options.grad_ys = grad_ys;
    options.stop_gradients = stop_gradients;
    return options;
  }
  std::size_t num_inputs() const { return graph_.node(call_).inputs.size(); }
  /// Behind the inputs stand the constants.
  AnyOutput input(std::size_t i) const {
    return i < num_inputs() ? edge(graph_.node(call_).inputs[i]) : edge(constants_[i - num_inputs()]);
  }
  AnyOutput edge(Endpoint endpoint) const { return AnyOutput(&graph_, endpoint); }

  /// The edge that stands for input `i` of the call in the body of function `f`.
  AnyOutput inside(std::size_t f, std::size_t i) const {
    if (i >= num_inputs()) return input(i);
    const GraphStore::Function& parts = edges_.parts(f);
    const std::size_t argument = i - num_leading_;
    if (argument < parts.arguments.size()) return edge({parts.arguments[argument], 0});
    return edges_.captured().empty() ? input(i) : edge(edges_.captured()[argument - parts.arguments.size()]);
  }

  /// In the body of the gradient of function `f`: differentiates with respect to the edges that the wanted inputs are
  /// there.
  std::vector<AnyOutput> differentiate(std::size_t f, std::span<const AnyOutput> ys, std::span<const AnyOutput> grad_ys,
                                       std::span<const std::size_t> inputs) {
    std::vector<AnyOutput> xs, dxs;
    for (const std::size_t i : inputs) xs.push_back(inside(f, i));
    if (ys.empty()) {
      for (const AnyOutput& x : xs) dxs.push_back(zero_gradient(x));
    } else {
      // The nodes that made the inputs are around the call.
      std::vector<AnyOutput> stops;
      for (std::size_t i = num_leading_; i < graph_.node(call_).inputs.size(); ++i) stops.push_back(inside(f, i));
      const auto num_given = static_cast<std::size_t>(
          std::count_if(inputs.begin(), inputs.end(), [&](std::size_t i) { return i < num_inputs(); }));
      const std::vector<Gradient> all = gradients_in_body(ys, xs, num_given, options_of(grad_ys, stops));
      for (std::size_t i = 0; i < xs.size(); ++i) dxs.push_back(densify(all[i], xs[i]));
    }
    for (AnyOutput& dx : dxs) dx = edges_.seen(dx);
    return dxs;
  }

  BuiltNode build_branch() {
    const auto build_one = [this](std::size_t f) {
      const ScopeGuard reading = edges_.enter();
      const GraphStore::Function& parts = edges_.parts(f);
      std::vector<AnyOutput> ys, grad_ys;
      for (std::size_t o = 0; o < dys_.size(); ++o) {
        if (!dys_[o].is_valid()) continue;
        ys.push_back(edge(graph_.node(parts.results).inputs[o]));
        grad_ys.push_back(dys_[o]);
      }
      for (const KeptGradient& each : kept_) {
        const AnyOutput of = kept_edge(each.node);
        if (of.node().function != edges_.function(f)) continue;
        ys.push_back(of);
        grad_ys.push_back(each.dy);
      }
      return BodyResults{differentiate(f, ys, grad_ys, wanted_), {}};
    };
    if (graph_.node(call_).op->role == OpRole::branch) {
      return any_branch(input(0), numbered_branches(edges_.num_functions()), build_one, "gradient", {});
    }
    return any_call(
        graph_, [&](std::span<const AnyOutput>) { return build_one(0); }, "gradient", {}, attrs_of_function());
  }

  FunctionBegin::Attrs attrs_of_function() const {
    FunctionBegin::Attrs attrs;
    const Node& function = graph_.node(edges_.function(0));
    if (function.op == &op_def<FunctionBegin>) attrs = *static_cast<const FunctionBegin::Attrs*>(function.attrs.get());
    const Node& call = graph_.node(call_);
    if (call.op == &op_def<CallFunction>) {
      attrs.is_inlined |= static_cast<const CallFunction::Attrs*>(call.attrs.get())->is_inlined;
    }
    return attrs;
  }

  AnyOutput kept_edge(NodeId kept) const {
    const Node& node = graph_.node(kept);
    const NodeId of = graph_.find_appended(std::get<std::string>(attr_of(node, node.op->attr_fields[0])));
    const std::int64_t output = std::get<std::int64_t>(attr_of(node, node.op->attr_fields[1]));
    const bool exists =
        of.is_valid() && output >= 0 && static_cast<std::size_t>(output) < graph_.node(of).outputs.size();
    if (!exists || !graph_.node(of).function.is_valid()) {
      throw_error(Status::invalid_argument("no body has what is to be kept of it").with_node(node.op->name, node.name));
    }
    return edge({of, static_cast<std::int32_t>(output)});
  }

  // ---- loops: backwards over the iterations, with the variables' gradients and the sums of the captures' ----

  std::size_t num_variables() const { return graph_.node(call_).outputs.size(); }

  static constexpr std::size_t loop_body = 1;

  BuiltNode build_loop() {
    for (std::size_t v = 0; v < num_variables(); ++v) {
      if (is_differentiable(graph_.node(call_).outputs[v].dtype)) variables_.push_back(v);
    }
    for (const std::size_t i : wanted_) {
      if (i >= num_variables()) captures_.push_back(i);
    }
    // The iteration, the variables, the captures.
    const Expr last = Expr(edges_count()) - 1.0;
    std::vector<AnyOutput> initial{last};
    std::vector<PartialShape> shapes{Shape{}};
    const auto add = [&](const AnyOutput& first, const PartialShape& shape) {
      initial.push_back(first);
      shapes.push_back(first.dtype() == DType::variant ? PartialShape::unknown() : shape);
    };
    for (const std::size_t v : variables_) {
      const AnyOutput output = edge({call_, static_cast<std::int32_t>(v)});
      // If a variable grows, the gradient of its last value may have a shape that no other gradient has.
      add(with_shape(dys_[v].is_valid() ? dys_[v] : zero_gradient(output), output.shape()),
          inside(loop_body, v).shape());
    }
    for (const std::size_t i : captures_) {
      const AnyOutput zeros = zero_gradient(input(i));
      add(zeros, zeros.shape());
    }
    const auto goes_on = [&](std::span<const AnyOutput> state) {
      const AnyOutput zero = any_constant(graph_, Tensor<std::int64_t>::full({}, 0), {});
      return BodyResults{{AnyOutput(dflow::build<GreaterEqual>({state[0], zero}))}, {}};
    };
    const auto go = [&](std::span<const AnyOutput> state) { return go_back(state, shapes); };
    LoopOptions options{.shapes = shapes};
    if (const Node& forward = graph_.node(call_); forward.op == &op_def<While>) {
      const auto& attrs = *static_cast<const While::Attrs*>(forward.attrs.get());
      options.parallel_iterations = attrs.parallel_iterations;
      options.max_kept_bytes = attrs.max_kept_bytes;
    }
    return any_loop(initial, goes_on, go, options, {.name = {}});
  }

  /// One iteration of the gradient. `shapes` are the shapes of its variables.
  BodyResults go_back(std::span<const AnyOutput> state, std::span<const PartialShape> shapes) {
    const ScopeGuard reading = edges_.enter(state[0]);
    const GraphStore::Function& parts = edges_.parts(loop_body);
    std::vector<AnyOutput> ys, dys;
    for (std::size_t k = 0; k < variables_.size(); ++k) {
      ys.push_back(edge(graph_.node(parts.results).inputs[variables_[k]]));
      dys.push_back(state[k + 1]);
    }
    for (const KeptGradient& each : kept_) {
      if (graph_.node(each.node).op->name != KeptList::name) continue;  // how many iterations there were
      const AnyOutput of = kept_edge(each.node);
      if (!is_differentiable(of.dtype()) || of.node().function != edges_.function(loop_body)) continue;
      ys.push_back(of);
      dys.push_back(kept_gradient(each.dy, ys.back(), state[0]));
    }
    std::vector<std::size_t> inputs = variables_;
    inputs.insert(inputs.end(), captures_.begin(), captures_.end());
    const std::vector<AnyOutput> dxs = differentiate(loop_body, ys, dys, inputs);
    BodyResults next{{AnyOutput(Expr(state[0]) - 1.0)}, {}};
    for (std::size_t k = 0; k < dxs.size(); ++k) {
      const bool is_variable = k < variables_.size();
      next.edges.push_back(with_shape(is_variable ? dxs[k] : sums_.add(k, state[k + 1], dxs[k]), shapes[k + 1]));
    }
    return next;
  }

  /// The gradient of the value that an edge of the body had in that iteration, taken from the gradients of the list
  /// that kept the values.
  static AnyOutput kept_gradient(const AnyOutput& gradients, const AnyOutput& of, const AnyOutput& iteration) {
    if (of.dtype() == DType::variant) return dflow::build<KeptListElement>({gradients, iteration});
    return dflow::build<TensorListGetItem>({gradients, iteration, shape_of(of)}, {.zero_if_missing = true}, {},
                                           two_types(of.dtype(), iteration.dtype()));
  }

  AnyOutput edges_count() {
    const ScopeGuard reading = edges_.enter();
    return edges_.count();
  }

  std::vector<AnyOutput> loop_gradients(const BuiltNode& gradient, std::vector<AnyOutput> dxs) {
    const std::size_t num_all = variables_.size() + captures_.size();
    for (std::size_t k = 0; k < num_all; ++k) {
      const bool is_variable = k < variables_.size();
      const std::size_t of = is_variable ? variables_[k] : captures_[k - variables_.size()];
      const AnyOutput last = gradient.output(static_cast<int>(k + 1));
      dxs[of] = with_shape(is_variable ? last : sums_.total(k, gradient, last), input(of).shape());
    }
    return dxs;
  }

  GraphStore& graph_;
  const NodeId call_;
  KeptEdges edges_;
  std::span<const AnyOutput> dys_;
  std::span<const KeptGradient> kept_;
  std::span<const Endpoint> constants_;
  const GradientOptions options_;  ///< without edges
  std::size_t num_leading_ = 0;
  std::vector<std::size_t> wanted_;     ///< inputs, and constants behind them
  std::vector<std::size_t> variables_;  ///< of a loop, that have gradients
  std::vector<std::size_t> captures_;   ///< of a loop: inputs, and constants behind them
  LoopSums sums_{graph_};               ///< of a loop: over captures_, counted behind variables_
};

std::vector<AnyOutput> call_gradients(GraphStore& graph, NodeId call, std::span<const AnyOutput> dys,
                                      std::span<const KeptGradient> kept, const std::vector<bool>& is_wanted,
                                      std::span<const Endpoint> constants, const GradientOptions& options) {
  return CallGradient(graph, call, dys, kept, is_wanted, constants, options).build();
}

}  // namespace dflow::detail
