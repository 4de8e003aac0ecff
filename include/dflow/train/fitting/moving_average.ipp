#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/fitting/moving_average.hpp>
#include <dflow/train/master_copy.hpp>
#include <dflow/train/optimizer.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace dflow::train {

namespace detail {
void require_averaged(const AnyOutput& value, const At& at) {
  if (value.is_valid()) return;
  throw_error(Status::invalid_argument("ExponentialMovingAverage: a value is an empty Output").with_location(at.where));
}
}  // namespace detail

ExponentialMovingAverage::ExponentialMovingAverage(double decay, MovingAverageOptions options,
                                                   std::source_location where)
    : decay_(decay), options_(std::move(options)) {
  if (decay >= 0 && decay < 1) return;
  throw_error(Status::invalid_argument(str_cat("ExponentialMovingAverage: a decay of ", decay, " is not in [0, 1)"))
                  .with_location(where));
}

void ExponentialMovingAverage::enter_graph(GraphStore& graph, const At& at) {
  const std::shared_ptr<const NodeList> known = graph_.lock();
  if (known == graph.keep_nodes()) return;
  if (known != nullptr && !averages_.empty()) {
    throw_error(Status::invalid_argument("ExponentialMovingAverage: its averages are of another graph")
                    .with_location(at.where));
  }
  averages_.clear();
  graph_ = graph.keep_nodes();
}

const ExponentialMovingAverage::Average* ExponentialMovingAverage::find(const AnyOutput& of) const {
  if (!of.is_valid() || of.graph()->keep_nodes() != graph_.lock()) return nullptr;
  const auto at =
      std::find_if(averages_.begin(), averages_.end(), [&](const Average& each) { return each.of == of.endpoint(); });
  return at == averages_.end() ? nullptr : &*at;
}

AnyOutput ExponentialMovingAverage::weight(GraphStore& graph, DType dtype) const {
  if (!options_.num_updates) return Hyperparameter(1.0 - decay_).edge(graph, dtype);
  // Computed as 1 - decay, because the float difference of 1 and a decay near it has few digits or none.
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  const Expr n = dflow::detail::cast_to(*options_.num_updates, wide);
  const Expr early = 9.0 / (n + 10.0);
  return dflow::detail::cast_to(build<Maximum>({scalar_like(early, 1.0 - decay_), early}), dtype);
}

/// The average stands beside its value. It starts at the value's initial value, or at zeros.
ExponentialMovingAverage::Average& ExponentialMovingAverage::average_for(const AnyOutput& value,
                                                                         const AnyVariable* variable) {
  const AnyOutput& of = variable != nullptr ? variable->handle() : value;
  const Endpoint key = of.endpoint();
  if (const Average* const known = find(of)) return averages_[static_cast<std::size_t>(known - averages_.data())];
  GraphStore& graph = *of.graph();
  const std::string& name = of.node().name;
  if (!in_mask(value.dtype(), dtype_mask<FloatTypes>) || !value.shape().is_fully_defined()) {
    throw_error(
        Status::invalid_argument(str_cat("ExponentialMovingAverage: '", name, "' is ", dtype_name(value.dtype()),
                                         value.shape().to_string(), "; averages are of floats of a known shape"))
            .with_location(of.node().where));
  }
  GraphStore::Scope scope = graph.scope();
  scope.name_prefix = name + "/";
  scope.colocate(of.node_id());
  scope.control_inputs.clear();
  if (!of.node().function.is_valid()) {  // the average is no part of a body in which the variable is averaged
    scope.function = NodeId();
    scope.foreign = nullptr;
  }
  const ScopeGuard beside_it = graph.enter(scope);
  const auto make = [&](const AnyOutput& initial, std::string_view wanted, std::string_view slice = {}) {
    const std::string unique = graph.unique_name(wanted).substr(scope.name_prefix.size());
    return AnyVariable::make(graph, initial, {.name = unique, .trainable = false, .slice = slice});
  };
  const auto zeros = [&](DType dtype, const Shape& shape) {
    return dflow::detail::any_fill(graph, IndexList(shape), AnyTensor::zeros(dtype, {}), {});
  };
  // Updates of 16-bit values are less than their last digit: the running values are floats.
  const DType running = dflow::detail::sum_type(value.dtype());
  Average average{key, variable != nullptr, {}, {}, {}, {}};
  const Shape shape = value.shape().to_shape();
  if (variable != nullptr) {
    const Endpoint initial = variable->initializer().node().inputs.at(1);
    average.variable = make(AnyOutput(&graph, initial), options_.name, variable->slice());
  } else {
    average.variable = make(zeros(value.dtype(), shape), options_.name);
    if (options_.zero_debias) {
      average.biased = make(zeros(running, shape), "biased");
      average.count = make(zeros(running, {}), "local_step");
    }
  }
  if (running != value.dtype() && !average.biased.handle().is_valid()) {
    average.master = make_slot(average.variable, "master", running);
  }
  return averages_.emplace_back(std::move(average));
}

Operation ExponentialMovingAverage::moved(Average& average, const AnyOutput& value) const {
  GraphStore& graph = *value.graph();
  const AnyOutput wide = dflow::detail::widened(value);
  const DType dtype = wide.dtype();
  const AnyOutput share = weight(graph, dtype);
  const auto move = [&](const AnyVariable& target) {
    return target.assign_sub(AnyOutput((Expr(target.read()) - Expr(wide)) * Expr(share)));
  };
  if (average.master.handle().is_valid()) return detail::MasterCopy(average.variable, average.master).apply(move);
  if (!average.biased.handle().is_valid()) return move(average.variable);
  const Operation moved = move(average.biased);
  const Operation counted = average.count.assign_add(Hyperparameter(1.0).edge(graph, dtype));
  const std::array<Operation, 2> both{moved, counted};
  const ScopeGuard after = enter_control_dependencies(graph, both);
  const Expr decay = 1.0 - Expr(share);
  const Expr power = AnyOutput(build<Pow>({decay, average.count.read()}));
  const AnyOutput debiased = AnyOutput(Expr(average.biased.read()) / (1.0 - power));
  return average.variable.assign(dflow::detail::cast_to(debiased, value.dtype()));
}

Operation ExponentialMovingAverage::apply(std::span<const AnyVariable> variables, const At& at) {
  if (variables.empty())
    throw_error(Status::invalid_argument("ExponentialMovingAverage: of no variables").with_location(at.where));
  for (const AnyVariable& variable : variables) detail::require_averaged(variable.handle(), at);
  GraphStore& graph = *variables.front().handle().graph();
  enter_graph(graph, at);
  const ScopeGuard place = enter_place(graph, at.where);
  std::vector<Operation> moves;
  for (const AnyVariable& variable : variables) {
    Average& average = average_for(variable.read_edge(), &variable);
    const ScopeGuard with = enter_colocation(graph, variable.handle().operation());
    moves.push_back(moved(average, variable.read()));
  }
  return group(moves, at);
}

Operation ExponentialMovingAverage::apply_to_edges(std::span<const AnyOutput> edges, const At& at) {
  if (edges.empty())
    throw_error(Status::invalid_argument("ExponentialMovingAverage: of no edges").with_location(at.where));
  for (const AnyOutput& edge : edges) detail::require_averaged(edge, at);
  GraphStore& graph = *edges.front().graph();
  enter_graph(graph, at);
  const ScopeGuard place = enter_place(graph, at.where);
  std::vector<Operation> moves;
  for (const AnyOutput& edge : edges) moves.push_back(moved(average_for(edge, nullptr), edge));
  return group(moves, at);
}

AnyVariable ExponentialMovingAverage::average(const AnyVariable& variable) const {
  return average_of_edge(variable.handle());
}

AnyVariable ExponentialMovingAverage::average_of_edge(const AnyOutput& edge) const {
  if (const Average* const found = find(edge)) return found->variable;
  throw_error(Status::invalid_argument(
      str_cat("ExponentialMovingAverage: there is no average of '", edge.node().name, "': apply was not given it")));
}

SavedVariables ExponentialMovingAverage::variables_to_restore(const Graph& graph) const {
  std::set<std::string> own;
  for (const Average& average : averages_) {
    if (graph.store()->keep_nodes() != graph_.lock()) break;
    own.insert(average.variable.name());
    if (average.biased.handle().is_valid()) own.insert({average.biased.name(), average.count.name()});
    if (average.master.handle().is_valid()) own.insert(average.master.name());
  }
  std::vector<SavedVariable> saved;
  for (const AnyVariable& variable : global_variables(graph)) {
    if (own.contains(variable.name())) continue;
    const Average* const average = find(variable.handle());
    saved.push_back({average != nullptr ? average->variable.whole_name() : variable.whole_name(), variable});
  }
  return saved;
}

}  // namespace dflow::train
