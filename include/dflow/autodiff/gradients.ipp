#pragma once

#include <dflow/autodiff/call_gradients.hpp>
#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

/// Reverse accumulation over one graph. Node ids are a topological order, so the sweeps are loops over ids.
///
/// Gradients that bodies of loops and functions give are sums over iterations and calls, in the type `sum_type`. They
/// stay so on their way into bodies and out of them. An op takes them rounded to the type of its output.
class GradientBuilder {
 public:
  /// `is_body`: in a body, the gradients that are given may be in the type of sums, and so may the results.
  GradientBuilder(GraphStore& graph, std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                  std::size_t num_given, bool is_body, const GradientOptions& options)
      : graph_(graph),
        ys_(ys),
        xs_(xs),
        num_given_(num_given),
        is_body_(is_body),
        all_xs_(xs.begin(), xs.end()),
        options_(options) {}

  std::vector<Gradient> build() {
    find_other_reads();
    mark_dependents();
    seed();
    for (NodeId id = last_; id >= first_; --id) {
      if (depends_[index(id)]) differentiate(id);
    }
    std::vector<Gradient> result;
    result.reserve(xs_.size());
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      Gradient gradient = i < num_given_ ? collect(xs_[i].endpoint()) : collect_reads(xs_[i]);
      result.push_back(is_body_ ? std::move(gradient) : rounded(std::move(gradient), xs_[i]));
    }
    return result;
  }

 private:
  using Contributions = std::vector<Gradient>;

  static std::uint64_t key(Endpoint edge) {
    return static_cast<std::uint64_t>(edge.node.position()) << 32 | static_cast<std::uint32_t>(edge.index);
  }
  std::size_t index(NodeId id) const { return static_cast<std::size_t>(id - first_); }
  bool is_x(Endpoint edge) const { return x_edges_.contains(key(edge)); }
  bool is_stopped(Endpoint edge) const { return stopped_edges_.contains(key(edge)); }
  bool is_given(Endpoint edge) const { return given_edges_.contains(key(edge)); }
  /// Something flows back along this edge to an x.
  bool leads_to_x(Endpoint edge) const {
    if (edge.node < first_ || edge.node > last_) return false;
    if (has_x_[index(edge.node)] && is_x(edge)) return true;
    return depends_[index(edge.node)] && !is_stopped(edge);
  }

  /// An x stands for a variable if it reads the variable and waits for nothing: the gradients of the variable's other
  /// reads then belong to the x. In a body, the given edges stand for themselves alone, and nothing flows to a stopped
  /// edge.
  void find_other_reads() {
    std::unordered_map<std::uint64_t, std::vector<Endpoint>> by_handle;
    NodeId begin = xs_.front().node_id(), end = begin;
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      const AnyOutput& x = xs_[i];
      if (i < num_given_) {
        given_edges_.insert(key(x.endpoint()));
        continue;
      }
      const Node& node = x.node();
      if (node.op->role != OpRole::read_variable || !node.control_inputs.empty()) continue;
      std::vector<Endpoint>& of = by_handle[key(node.inputs[0])];
      begin = std::min(begin, node.inputs[0].node);
      if (std::find(of.begin(), of.end(), x.endpoint()) == of.end()) of.push_back(x.endpoint());
    }
    if (by_handle.empty()) return;
    for (const AnyOutput& x : xs_) x_edges_.insert(key(x.endpoint()));
    for (const AnyOutput& stop : options_.stop_gradients) stopped_edges_.insert(key(stop.endpoint()));
    for (const AnyOutput& y : ys_) end = std::max(end, y.node_id());
    for (const NodeId id : IndexRange(begin, end + 1)) {
      const Node& node = graph_.node(id);
      if (node.op->role != OpRole::read_variable) continue;
      const auto found = by_handle.find(key(node.inputs[0]));
      const Endpoint read{id, 0};
      if (found == by_handle.end() || is_given(read) || (is_stopped(read) && !is_x(read))) continue;
      for (const Endpoint x : found->second) {
        if (x == read) continue;
        other_reads_[key(x)].push_back(read);
        all_xs_.emplace_back(&graph_, read);
      }
    }
    x_edges_.clear();
  }

  /// Marks the nodes between the xs and the ys that have an input that leads back to an x.
  void mark_dependents() {
    first_ = xs_.front().node_id();
    last_ = first_;
    for (const AnyOutput& x : all_xs_) first_ = std::min(first_, x.node_id());
    for (const AnyOutput& y : ys_) last_ = std::max(last_, y.node_id());
    last_ = std::max(last_, first_);
    for (const AnyOutput& x : all_xs_) last_ = std::max(last_, x.node_id());
    depends_.resize(index(last_) + 1);
    has_x_.resize(index(last_) + 1);
    for (std::size_t i = 0; i < all_xs_.size(); ++i) {
      const AnyOutput& x = all_xs_[i];
      has_x_[index(x.node_id())] = true;
      const bool is_new = x_edges_.insert(key(x.endpoint())).second;
      const Node& node = x.node();
      if (is_new && node.op->role == OpRole::constant && node.control_inputs.empty()) {
        constants_.push_back(x.endpoint());
      }
    }
    // Bodies may read a variable by its handle, as they read constants: an x that stands for a variable is added here.
    for (std::size_t i = num_given_; i < xs_.size(); ++i) {
      const Endpoint x = xs_[i].endpoint();
      if (other_reads_.contains(key(x)) && std::find(constants_.begin(), constants_.end(), x) == constants_.end()) {
        constants_.push_back(x);
      }
    }
    for (const AnyOutput& stop : options_.stop_gradients) stopped_edges_.insert(key(stop.endpoint()));
    for (const NodeId id : IndexRange(first_, last_ + 1)) {
      const Node& node = graph_.node(id);
      require_order(node, id);
      if (node.op->gradient_stops) continue;
      if (node.op->role == OpRole::kept_value && !node.inputs.empty()) {  // it has nothing of the edge that it reads
        const NodeId call = node.inputs[0].node;
        depends_[index(id)] = call >= first_ && depends_[index(call)];
        continue;
      }
      depends_[index(id)] =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](Endpoint input) { return leads_to_x(input); });
      if (!constants_.empty() && calls_functions(node.op->role) && find_constants(id)) depends_[index(id)] = true;
    }
  }

  /// Bodies read constants that are around them, and variables by their handles. No input of the call gives them to
  /// the bodies.
  bool find_constants(NodeId call) {
    for (const Endpoint constant : constants_) {
      std::unordered_set<std::uint32_t> seen;
      for (const std::string& name : called_functions(graph_.node(call))) {
        if (!reads(graph_.find_appended(name), constant, seen)) continue;
        constants_read_[call].push_back(constant);
        break;
      }
    }
    return constants_read_.contains(call);
  }
  /// Whether the body of the function, or of a function that it calls, reads the edge or the variable that the edge
  /// reads.
  bool reads(NodeId begin, Endpoint edge, std::unordered_set<std::uint32_t>& seen) const {
    if (!begin.is_valid() || !seen.insert(static_cast<std::uint32_t>(begin.position())).second) return false;
    const std::optional<GraphStore::Function> function = graph_.function(begin);
    if (!function || !function->results.is_valid()) return false;
    for (const NodeId id : IndexRange<NodeId>(begin + 1, function->results + 1)) {
      const Node& node = graph_.node(id);
      if (std::find(node.inputs.begin(), node.inputs.end(), edge) != node.inputs.end()) return true;
      if (node.op->role == OpRole::read_variable && is_read_of(edge, node.inputs[0])) return true;
      if (!calls_functions(node.op->role)) continue;
      for (const std::string& name : called_functions(node)) {
        if (reads(graph_.find_appended(name), edge, seen)) return true;
      }
    }
    return false;
  }

  bool is_read_of(Endpoint edge, Endpoint handle) const {
    const Node& node = graph_.node(edge.node);
    return node.op->role == OpRole::read_variable && node.inputs[0] == handle;
  }

  /// The sweeps rely on it.
  static void require_order(const Node& node, NodeId id) {
    for (const Endpoint input : node.inputs) {
      if (input.node < id) continue;
      throw_error(
          Status::unimplemented(str_cat("node '", node.name, "' takes an edge of a later node, and a graph with loops ",
                                        "cannot be differentiated"))
              .with_node(node.op->name, node.name)
              .with_location(node.where));
    }
  }

  /// Makes the nodes built next part of the gradient of `node`: errors in them name its line, and they run on its
  /// device.
  ScopeGuard enter_node(const Node& node) {
    GraphStore::Scope scope = graph_.scope();
    scope.where = node.where;
    scope.device = node.device;
    scope.device_rule = nullptr;
    scope.colocated_with = node.colocated_with;
    return graph_.enter(std::move(scope));
  }

  /// Whether dy may be given as the gradient of y.
  bool fits(const AnyOutput& dy, const AnyOutput& y) const {
    const bool has_type = dy.dtype() == y.dtype() || (is_body_ && dy.dtype() == sum_type(y.dtype()));
    return has_type && dy.shape().is_compatible_with(y.shape());
  }

  void seed() {
    for (std::size_t i = 0; i < ys_.size(); ++i) {
      AnyOutput dy = i < options_.grad_ys.size() ? options_.grad_ys[i] : AnyOutput();
      const AnyOutput& y = ys_[i];
      if (!dy.is_valid()) {
        const ScopeGuard guard = enter_node(y.node());
        dy = ones_like(y);
      } else if (!fits(dy, y)) {
        throw_error(Status::invalid_argument(str_cat("the gradient given for '", y.name(), "' is ",
                                                     dtype_name(dy.dtype()), " ", dy.shape().to_string(), ", not ",
                                                     dtype_name(y.dtype()), " ", y.shape().to_string()))
                        .with_node(y.node().op->name, y.node().name)
                        .with_location(y.node().where));
      }
      contribute(y.endpoint(), {dy, std::nullopt});
    }
  }

  void differentiate(NodeId id) {
    const Node& node = graph_.node(id);
    const ScopeGuard guard = enter_node(node);
    std::vector<AnyOutput> dys(node.outputs.size());
    const bool takes_sums = calls_functions(node.op->role) || node.op->role == OpRole::kept_value;
    bool any = false;
    for (std::size_t o = 0; o < dys.size(); ++o) {
      const Endpoint edge{id, static_cast<std::int32_t>(o)};
      const AnyOutput y(&graph_, edge);
      const Gradient gradient = is_stopped(edge) ? Gradient{} : collect(edge);
      if (!gradient.exists()) continue;
      dys[o] = densify(takes_sums ? gradient : rounded(gradient, y), y);
      any = true;
    }
    if (node.op->role == OpRole::kept_value) {
      if (any) kept_[node.inputs[0].node].push_back({id, dys[0]});
      return;
    }
    if (calls_functions(node.op->role)) {
      if (any || kept_.contains(id)) differentiate_call(id, dys);
      return;
    }
    if (!any) return;
    if (node.op->gradient == nullptr) {
      throw_error(Status::unimplemented(str_cat("op ", node.op->name, " has no gradient"))
                      .with_node(node.op->name, node.name)
                      .with_location(node.where));
    }
    GradientContext context(graph_, id, dys);
    call_gradient(node, context);
    std::vector<Endpoint> of;
    Contributions parts;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Endpoint input = node.inputs[static_cast<std::size_t>(i)];
      Gradient part{context.dense_dx(i), context.sparse_dx(i)};
      if (!leads_to_x(input) || !part.exists()) continue;
      of.push_back(input);
      parts.push_back(std::move(part));
    }
    contribute_all(of, std::move(parts));
  }

  void differentiate_call(NodeId id, std::span<const AnyOutput> dys) {
    const std::vector<Endpoint>& inputs = graph_.node(id).inputs;
    std::vector<bool> is_wanted;
    is_wanted.reserve(inputs.size());
    for (const Endpoint input : inputs) is_wanted.push_back(leads_to_x(input));
    const std::vector<Endpoint> constants = constants_read_[id];
    const std::vector<AnyOutput> dxs = call_gradients(graph_, id, dys, kept_[id], is_wanted, constants, options_);
    std::vector<Endpoint> of;
    Contributions parts;
    for (std::size_t i = 0; i < dxs.size(); ++i) {
      if (!dxs[i].is_valid() || (i < is_wanted.size() && !is_wanted[i])) continue;
      of.push_back(i < is_wanted.size() ? inputs[i] : constants[i - is_wanted.size()]);
      parts.push_back({dxs[i], std::nullopt});
    }
    contribute_all(of, std::move(parts));
  }

  /// Each error that the op's gradient throws names a node, and the line of the program that built the differentiated
  /// node.
  static void call_gradient(const Node& node, GradientContext& context) {
    try {
      node.op->gradient(context);
    } catch (...) {
      const Status status = status_of_current_exception();
      throw_error(Status(status.code(), std::string(status.message()))
                      .with_node(status.op(), status.node())
                      .with_node(node.op->name, node.name)
                      .with_location(node.where));
    }
  }

  /// Adds the gradients that an op gives to the edges it reads, in the order of the edges.
  void contribute_all(std::span<const Endpoint> edges, Contributions parts) {
    if (options_.gate_gradients) parts = dflow::gate(parts);
    for (std::size_t i = 0; i < parts.size(); ++i) contribute(edges[i], std::move(parts[i]));
  }
  void contribute(Endpoint edge, Gradient part) {
    Contributions& parts = contributions_[key(edge)];
    if (options_.aggregation == GradientAggregation::accumulate && part.dense.is_valid()) {
      const auto sum =
          std::find_if(parts.begin(), parts.end(), [](const Gradient& each) { return each.dense.is_valid(); });
      if (sum != parts.end()) {
        const ScopeGuard guard = enter_node(graph_.node(edge.node));
        sum->dense = sum_of_gradients({widened(sum->dense), part.dense});
        return;
      }
    }
    parts.push_back(std::move(part));
  }

  /// The gradient of x in the type of x.
  Gradient rounded(Gradient gradient, const AnyOutput& x) {
    if (gradient.dense.is_valid() && gradient.dense.dtype() != x.dtype()) {
      const ScopeGuard guard = enter_node(x.node());
      gradient.dense = cast_to(gradient.dense, x.dtype());
    }
    return gradient;
  }

  /// The sum of all gradients that have flowed into an edge: dense if any part is, else all rows together.
  Gradient collect(Endpoint edge) {
    const auto found = contributions_.find(key(edge));
    if (found == contributions_.end()) return {};
    Contributions& parts = found->second;
    if (parts.size() > 1) {
      const ScopeGuard guard = enter_node(graph_.node(edge.node));
      parts = {sum(parts, AnyOutput(&graph_, edge))};
    }
    return parts.front();
  }

  /// Adds the gradients that have flowed into the other reads of the variable that x reads. A given edge has its own
  /// share itself.
  Gradient collect_reads(const AnyOutput& x) {
    Contributions parts;
    const auto add = [&](Gradient part) {
      if (part.exists()) parts.push_back(std::move(part));
    };
    if (!is_given(x.endpoint())) add(collect(x.endpoint()));
    if (const auto others = other_reads_.find(key(x.endpoint())); others != other_reads_.end()) {
      for (const Endpoint read : others->second) add(collect(read));
    }
    if (parts.size() < 2) return parts.empty() ? Gradient{} : parts.front();
    const ScopeGuard guard = enter_node(x.node());
    return sum(parts, x);
  }

  Gradient sum(const Contributions& parts, const AnyOutput& x) {
    const bool all_sparse =
        std::all_of(parts.begin(), parts.end(), [](const Gradient& part) { return part.slices.has_value(); });
    std::vector<AnyOutput> values, indices;
    if (!all_sparse) {
      for (const Gradient& part : parts) {
        values.push_back(densify(part, x));
        if (options_.aggregation == GradientAggregation::accumulate && values.size() == 2) {
          values = {sum_of_gradients({widened(values[0]), values[1]})};
        }
      }
      return {values.size() == 1 ? values.front() : sum_of_gradients(values), std::nullopt};
    }
    // Rows that are named by int32 and by int64: int64 holds both.
    const DType first = parts.front().slices->indices.dtype();
    const bool is_mixed = std::any_of(parts.begin(), parts.end(),
                                      [&](const Gradient& part) { return part.slices->indices.dtype() != first; });
    for (const Gradient& part : parts) {
      values.push_back(part.slices->values);
      indices.push_back(is_mixed ? cast_to(part.slices->indices, DType::int64) : part.slices->indices);
    }
    return {AnyOutput(),
            IndexedSlices{any_concat(0, values), any_concat(0, indices), parts.front().slices->dense_shape}};
  }

  GraphStore& graph_;
  std::span<const AnyOutput> ys_;
  std::span<const AnyOutput> xs_;
  const std::size_t num_given_;  ///< of the xs, the first ones
  const bool is_body_;
  std::vector<AnyOutput> all_xs_;  ///< with the other reads of variables
  const GradientOptions& options_;
  NodeId first_, last_;
  std::vector<bool> depends_;
  std::vector<bool> has_x_;
  std::unordered_set<std::uint64_t> x_edges_;
  std::unordered_map<std::uint64_t, std::vector<Endpoint>> other_reads_;  ///< by the xs
  std::vector<Endpoint> constants_;  ///< of the xs: edges that bodies may read without being given them
  std::map<NodeId, std::vector<Endpoint>> constants_read_;  ///< by the calls that read them in their bodies
  std::unordered_set<std::uint64_t> stopped_edges_, given_edges_;
  std::unordered_map<std::uint64_t, Contributions> contributions_;
  std::map<NodeId, std::vector<KeptGradient>> kept_;  ///< by the calls that keep them
};

}  // namespace detail

AnyOutput densify(const Gradient& gradient, const AnyOutput& x) {
  if (gradient.dense.is_valid()) return gradient.dense;
  if (!x.is_valid()) throw_error(Status::invalid_argument("densify: x is an empty Output"));
  const Composite guard(*x.graph(), x.node().where);
  if (!gradient.slices) return detail::zero_gradient(x);
  return detail::scatter_rows(gradient.slices->values, gradient.slices->indices, gradient.slices->dense_shape,
                              x.shape());
}

std::vector<Gradient> gate(std::span<const Gradient> gradients) {
  std::vector<Gradient> gated(gradients.begin(), gradients.end());
  std::vector<AnyOutput*> waiting;
  for (Gradient& each : gated) {
    if (each.exists()) waiting.push_back(each.slices ? &each.slices->values : &each.dense);
  }
  if (waiting.size() < 2) return gated;
  GraphStore& graph = *waiting.front()->graph();
  // Nodes around the body that is built are there before the body begins.
  const auto is_here = [&](const AnyOutput& edge) { return edge.node().function == graph.scope().function; };
  std::vector<Operation> made;
  for (const AnyOutput* edge : waiting) {
    if (!edge->is_of(&graph)) throw_error(Status::invalid_argument("gate: the gradients belong to different graphs"));
    const Operation operation = edge->operation();
    if (is_here(*edge) && std::find(made.begin(), made.end(), operation) == made.end()) made.push_back(operation);
  }
  if (made.empty()) return gated;
  GraphStore::Scope anywhere = graph.scope();
  anywhere.device.clear();
  anywhere.device_rule = nullptr;
  anywhere.colocated_with = NodeId();
  const ScopeGuard guard = graph.enter(std::move(anywhere));
  const ScopeGuard names = enter_name_scope(graph, "gate");
  const Operation all = detail::no_op_after(graph, made, {.name = "all"});
  for (AnyOutput* edge : waiting) {
    if (edge->dtype() == DType::variant) continue;
    GraphStore::Scope beside = graph.scope();
    if (is_here(*edge)) beside.colocate(edge->node_id());
    const ScopeGuard there = graph.enter(std::move(beside));
    *edge = detail::any_with_dependencies({&all, 1}, *edge, {});
  }
  return gated;
}

namespace detail {

std::vector<Gradient> build_gradients(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                      std::size_t num_given, bool is_body, const GradientOptions& options) {
  if (xs.empty()) return {};
  if (ys.empty()) {
    throw_error(Status::invalid_argument("gradients: there is nothing to differentiate").with_location(options.where));
  }
  if (options.grad_ys.size() > ys.size()) {
    throw_error(Status::invalid_argument(
                    str_cat("gradients: ", options.grad_ys.size(), " gradients are given for ", ys.size(), " edges"))
                    .with_location(options.where));
  }
  GraphStore* const graph = xs.front().is_dangling() ? nullptr : xs.front().graph();
  const auto require = [&](std::span<const AnyOutput> edges, bool may_be_empty) {
    for (const AnyOutput& edge : edges) {
      if (edge.is_valid() ? edge.is_of(graph) : may_be_empty) continue;
      throw_error(Status::invalid_argument(str_cat("gradients: an edge ", edge.is_dangling()
                                                                              ? "belongs to a graph that is gone"
                                                                              : "is empty or belongs to another graph"))
                      .with_location(options.where));
    }
  };
  require(ys, false);
  require(xs, false);
  require(options.stop_gradients, false);
  require(options.grad_ys, true);
  GraphStore::Draft draft(*graph);
  const ScopeGuard guard = enter_name_scope(*graph, "gradients", options.where);
  std::vector<Gradient> dxs = GradientBuilder(*graph, ys, xs, num_given, is_body, options).build();
  draft.publish();
  return dxs;
}

std::vector<Gradient> gradients_in_body(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                        std::size_t num_given, const GradientOptions& options) {
  return build_gradients(ys, xs, num_given, true, options);
}

}  // namespace detail

std::vector<Gradient> gradients(std::span<const AnyOutput> ys, std::span<const AnyOutput> xs,
                                const GradientOptions& options) {
  return detail::build_gradients(ys, xs, 0, false, options);
}

}  // namespace dflow
