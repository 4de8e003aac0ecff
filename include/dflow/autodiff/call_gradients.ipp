#pragma once

#include <dflow/autodiff/body_edges.hpp>
#include <dflow/autodiff/call_gradients.hpp>
#include <dflow/autodiff/loop_sums.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/function_builders.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/cast.hpp>
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

/// The gradient of a function that calls itself: a function too.
struct KnownGradient {
  NodeId function;
  std::vector<Endpoint> kept;       ///< edges of the function's body that have gradients besides those of its results
  std::vector<Endpoint> constants;  ///< as in `call_gradients`
  FunctionHandle gradient;
  std::string tape;  ///< the node of the function's body that lists what the gradient reads
};

/// A function, and the scope in which a call of it is being differentiated. The function may call itself inside its
/// body: the gradient of each of the inner calls is a call too.
struct OpenGradient final : ScopeExtension {
  OpenGradient(NodeId of, bool gradient, std::shared_ptr<OpenGradient> around)
      : function(of), is_gradient(gradient), outer(std::move(around)) {}

  NodeId function;
  bool is_gradient;  ///< the scope is the body of a gradient, which may be built again: nothing outside knows its nodes
  std::vector<KnownGradient> known;
  std::shared_ptr<OpenGradient> outer;
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

  /// A call inside of a body may call a function that is being differentiated: then it calls a gradient.
  std::vector<AnyOutput> build_call(std::vector<AnyOutput> dxs) {
    const NodeId function = edges_.function(0);
    if (find_open(function) == nullptr) {
      const ScopeGuard inside = enter_open(function, false);
      return build_of_bodies(std::move(dxs));
    }
    std::map<std::pair<NodeId, std::int32_t>, std::vector<AnyOutput>> dys_of;
    for (const KeptGradient& each : kept_) {
      const Endpoint of = kept_edge(each.node).endpoint();
      if (is_differentiable(edge(of).dtype())) dys_of[{of.node, of.index}].push_back(each.dy);
    }
    std::vector<Endpoint> kept;
    std::vector<AnyOutput> dkept;
    for (const auto& [of, all] : dys_of) {
      kept.push_back({of.first, of.second});
      dkept.push_back(all.size() == 1 ? all[0] : sum_of_gradients(all));
    }
    const KnownGradient* known = find_known(function, kept);
    if (known == nullptr) known = &remember(define_gradient(function, std::move(kept)));
    return call_gradient(*known, dkept, std::move(dxs));
  }

  std::shared_ptr<OpenGradient> innermost() const { return graph_.scope().extensions.find<OpenGradient>(); }

  ScopeGuard enter_open(NodeId function, bool is_gradient) {
    GraphStore::Scope scope = graph_.scope();
    scope.extensions.set(std::make_shared<OpenGradient>(function, is_gradient, innermost()));
    return graph_.enter(std::move(scope));
  }

  /// A function that is part of another function's body is a different function in each call of the other one.
  bool is_part_of(NodeId function, const OpenGradient& open) const {
    return graph_.is_inside(graph_.node(function).function, open.function);
  }

  const OpenGradient* find_open(NodeId function) const {
    for (auto open = innermost(); open != nullptr; open = open->outer) {
      if (open->function == function) return open.get();
      if (is_part_of(function, *open)) break;
    }
    return nullptr;
  }

  const KnownGradient* find_known(NodeId function, const std::vector<Endpoint>& kept) const {
    for (auto open = innermost(); open != nullptr; open = open->outer) {
      for (const KnownGradient& each : open->known) {
        const bool is_it =
            each.function == function && each.kept == kept &&
            std::equal(each.constants.begin(), each.constants.end(), constants_.begin(), constants_.end());
        if (is_it) return &each;
      }
      if (is_part_of(function, *open)) break;
    }
    return nullptr;
  }

  /// Precondition: the function is open.
  const KnownGradient& remember(KnownGradient made) {
    auto open = innermost();
    while (!open->is_gradient && open->function != made.function) open = open->outer;
    open->known.push_back(std::move(made));
    return open->known.back();
  }

  /// And constants behind them.
  std::vector<std::size_t> differentiable_inputs() const {
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < num_inputs() + constants_.size(); ++i) {
      if (is_differentiable(input(i).dtype())) inputs.push_back(i);
    }
    return inputs;
  }

  /// Arguments: the tape of a call (`TapeEdges`), the gradients of all results that have any, then of the kept edges.
  /// Results: the gradients of all arguments, captures and constants that have any. Gradients of 16-bit floats are
  /// sums over the calls on the way.
  KnownGradient define_gradient(NodeId function, std::vector<Endpoint> kept) {
    const GraphStore::Function& parts = edges_.parts(0);
    KnownGradient made{function, std::move(kept), {constants_.begin(), constants_.end()}, {}, {}};
    std::vector<AnyOutput> ys;
    for (const Endpoint result : graph_.node(parts.results).inputs) {
      if (is_differentiable(edge(result).dtype())) ys.push_back(edge(result));
    }
    for (const Endpoint each : made.kept) ys.push_back(edge(each));
    Recursion known;
    known.argument_types.push_back(DType::variant);
    for (const AnyOutput& y : ys) known.argument_types.push_back(sum_type(y.dtype()));
    for (std::size_t i = parts.arguments.size(); i < num_inputs(); ++i) {
      known.captures.push_back(inside(0, i).endpoint());
    }
    const std::vector<std::size_t> of = differentiable_inputs();
    for (const std::size_t i : of) {
      const AnyOutput x = inside(0, i);
      known.result_types.push_back(sum_type(x.dtype()));
      known.result_shapes.push_back(x.dtype() == DType::variant ? PartialShape::unknown() : x.shape());
    }
    const auto build_it = [&](const FunctionHandle& self, std::span<const AnyOutput> given) {
      made.gradient = self;
      made.tape = TapeEdges::new_name(graph_, function);
      const ScopeGuard inside_of = enter_open(function, true);
      innermost()->known.push_back(made);
      TapeEdges edges(graph_, edges_, given[0]);
      const ScopeGuard reading = edges.enter();
      BodyResults results{differentiate(edges, 0, ys, given.subspan(1), of), {}};
      for (std::size_t i = 0; i < results.edges.size(); ++i) {
        results.edges[i] = with_shape(widened(results.edges[i]), known.result_shapes[i]);
      }
      edges.build_tape(made.tape);
      return results;
    };
    // Beside the function, in any body that calls it.
    GraphStore::Scope scope = graph_.scope();
    scope.function = graph_.node(function).function;
    scope.foreign = nullptr;
    scope.control_inputs.clear();
    const ScopeGuard beside = graph_.enter(std::move(scope));
    made.gradient = define_recursion(graph_, "gradient", known, build_it, {});
    return made;
  }

  std::vector<AnyOutput> call_gradient(const KnownGradient& known, std::span<const AnyOutput> dkept,
                                       std::vector<AnyOutput> dxs) {
    std::vector<AnyOutput> given{edges_.tape(known.tape)};
    for (std::size_t o = 0; o < dys_.size(); ++o) {
      const AnyOutput y = edge({call_, static_cast<std::int32_t>(o)});
      if (is_differentiable(y.dtype())) given.push_back(widened(dys_[o].is_valid() ? dys_[o] : zero_gradient(y)));
    }
    for (const AnyOutput& dy : dkept) given.push_back(widened(dy));
    const BuiltNode node = known.gradient.call(given, {});
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

  /// In the body of the gradient of function `f`, which reads the function by `edges`: differentiates with respect to
  /// the edges that the wanted inputs are there. The gradients may be in the type of sums.
  std::vector<AnyOutput> differentiate(BodyGradientEdges& edges, std::size_t f, std::span<const AnyOutput> ys,
                                       std::span<const AnyOutput> grad_ys, std::span<const std::size_t> inputs) {
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
    for (AnyOutput& dx : dxs) dx = edges.seen(dx);
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
      return BodyResults{differentiate(edges_, f, ys, grad_ys, wanted_), {}};
    };
    if (graph_.node(call_).op->role == OpRole::branch) {
      const auto build_wide = [&](std::size_t f) {  // all branches give the same types
        BodyResults results = build_one(f);
        for (AnyOutput& dx : results.edges) dx = widened(dx);
        return results;
      };
      return any_branch(input(0), numbered_branches(edges_.num_functions()), build_wide, "gradient", {});
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

  // A variable's gradient is a sum over the iterations too if the variable only passes through them. So it has the type
  // of sums.

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
      add(with_shape(widened(dys_[v].is_valid() ? dys_[v] : zero_gradient(output)), output.shape()),
          inside(loop_body, v).shape());
    }
    for (const std::size_t i : captures_) {
      const AnyOutput zeros = widened(zero_gradient(input(i)));
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
    const std::vector<AnyOutput> dxs = differentiate(edges_, loop_body, ys, dys, inputs);
    BodyResults next{{AnyOutput(Expr(state[0]) - 1.0)}, {}};
    for (std::size_t k = 0; k < dxs.size(); ++k) {
      const bool is_variable = k < variables_.size();
      const AnyOutput dx = is_variable ? widened(dxs[k]) : sums_.add(k, state[k + 1], dxs[k]);
      next.edges.push_back(with_shape(dx, shapes[k + 1]));
    }
    return next;
  }

  /// The gradient of the value that an edge of the body had in that iteration, taken from the gradients of the list
  /// that kept the values.
  static AnyOutput kept_gradient(const AnyOutput& gradients, const AnyOutput& of, const AnyOutput& iteration) {
    if (of.dtype() == DType::variant) return dflow::build<KeptListElement>({gradients, iteration});
    return gradient_element(gradients, iteration, of);
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
