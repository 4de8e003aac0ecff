#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/collective/collective.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/replicas/mirrored_replicas.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace dflow::train {

namespace detail {

/// The collection of the variables of all replicas except the first.
constexpr std::string_view mirrored_copies = "mirrored_copies";

/// One replica while it is built.
struct MirroredReplica {
  GraphStore::Scope scope;
  std::string variable_prefix;  ///< of variables that are found by name: "" or "replica_1/"
  AnyOutput loss;
  std::vector<AnyVariable> trained;
  std::vector<AnyVariable> variables;  ///< all variables of the replica
  std::vector<NodeId> penalties;       ///< penalties that it has put in the collection "regularization_losses"
  std::vector<GradientAndVariable> gradients;

  /// The variable's name in the replica.
  std::string_view name_of(const AnyVariable& variable) const {
    const std::string_view name = variable.name();
    if (name.starts_with(scope.name_prefix)) return name.substr(scope.name_prefix.size());
    return name.starts_with(variable_prefix) ? name.substr(variable_prefix.size()) : name;
  }

  bool trains(const AnyVariable& variable) const {
    return std::any_of(trained.begin(), trained.end(),
                       [&](const AnyVariable& each) { return each.handle().node_id() == variable.handle().node_id(); });
  }
};

/// "dense_1/kernel" is "dense/kernel": without the numbers that make names unique.
std::string without_numbers(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    std::string_view part = name.substr(0, slash);
    const std::size_t end = part.find_last_not_of("0123456789");
    if (end != std::string_view::npos && end > 0 && end + 1 < part.size() && part[end] == '_') {
      part = part.substr(0, end);
    }
    result += part;
    if (slash < name.size()) result += '/';
    name.remove_prefix(std::min(slash + 1, name.size()));
  }
  return result;
}

/// Opens the scopes of replica `number`, so that its nodes and variables have names of their own.
ScopeGuard enter_replica(GraphStore& graph, std::size_t number, MirroredReplica& replica) {
  GraphStore::Scope scope = graph.scope();
  const auto around = scope.extensions.find<VariableScopeState>();
  if (number > 0) {
    const std::string name = graph.unique_scope_name(str_cat("replica_", number));
    auto variables = std::make_shared<VariableScopeState>(*dflow::detail::variable_scope_of(graph));
    variables->is_outermost |= around == nullptr;
    variables->taken.clear();
    variables->path = variables->path_of(std::string_view(name).substr(scope.name_prefix.size()));
    replica.variable_prefix = variables->path + "/";
    scope.name_prefix = name + "/";
    scope.extensions.set(std::move(variables));
  } else if (around != nullptr && !around->path.empty()) {
    replica.variable_prefix = around->path + "/";
  }
  replica.scope = scope;
  return graph.enter(std::move(scope));
}

/// Checks that replica `number` has the same variables as the first, one for one.
void require_mirrored(const MirroredReplica& first, const MirroredReplica& other, std::size_t number,
                      std::source_location where) {
  const auto describe = [](const MirroredReplica& replica, std::size_t v, bool with_numbers) {
    if (v >= replica.variables.size()) return std::string("no variable");
    const AnyVariable& variable = replica.variables[v];
    const std::string_view name = replica.name_of(variable);
    return str_cat("'", with_numbers ? std::string(name) : without_numbers(name), "', ", dtype_name(variable.dtype()),
                   " ", variable.shape().to_string(), replica.trains(variable) ? "" : ", not trained");
  };
  const std::size_t count = std::max(first.variables.size(), other.variables.size());
  for (std::size_t v = 0; v < count; ++v) {
    if (describe(first, v, false) == describe(other, v, false)) continue;
    throw_error(
        Status::invalid_argument(str_cat("MirroredReplicas: variable ", v, " of replica ", number, " is ",
                                         describe(other, v, true), ", and of replica 0 ", describe(first, v, true)))
            .with_location(where));
  }
}

/// Replaces gradient `v` of each replica with the mean over all replicas.
void average(GraphStore& graph, std::span<MirroredReplica> replicas, std::size_t v, std::source_location where) {
  const auto gradient = [&](std::size_t r) -> Gradient& { return replicas[r].gradients[v].gradient; };
  // A node that waits for a collective waits for its results in all replicas. A node that waits for this Identity
  // waits only for its own replica.
  const auto own = [&](std::size_t r, const AnyOutput& result) -> AnyOutput {
    const ScopeGuard inside = graph.enter(replicas[r].scope);
    return build<Identity>({result});
  };
  std::vector<AnyOutput> values, indices;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    if (gradient(r).exists() != gradient(0).exists() ||
        gradient(r).slices.has_value() != gradient(0).slices.has_value()) {
      throw_error(Status::invalid_argument(str_cat("MirroredReplicas: the loss of replica ", r, " does not depend on '",
                                                   replicas[r].name_of(replicas[r].gradients[v].variable),
                                                   "' as that of replica 0 does"))
                      .with_location(where));
    }
    if (!gradient(r).exists()) continue;
    values.push_back(values_of(gradient(r)));
    if (gradient(r).slices) indices.push_back(gradient(r).slices->indices);
  }
  if (values.empty()) return;
  if (indices.empty()) {
    const std::vector<AnyOutput> means = dflow::detail::any_all_reduce(values, ReduceBy::mean);
    for (std::size_t r = 0; r < replicas.size(); ++r) gradient(r).dense = own(r, means[r]);
    return;
  }
  // The rows of all replicas, each with its share.
  const std::vector<AnyOutput> all_values = dflow::detail::any_all_gather(values);
  const std::vector<AnyOutput> all_indices = dflow::detail::any_all_gather(indices);
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    gradient(r).slices->values = Expr(own(r, all_values[r])) / static_cast<double>(replicas.size());
    gradient(r).slices->indices = own(r, all_indices[r]);
  }
}

}  // namespace detail

/// The nodes that `minimize` has built.
struct MirroredReplicas::Built {
  std::vector<AnyOutput> losses;
  AnyOutput loss;
  Operation mirror;
};

MirroredReplicas::MirroredReplicas(std::shared_ptr<const Optimizer> optimizer, std::vector<std::string> devices)
    : optimizer_(std::move(optimizer)), devices_(std::move(devices)) {
  if (optimizer_ == nullptr) throw_error(Status::invalid_argument("MirroredReplicas: of no optimizer"));
  if (devices_.empty()) throw_error(Status::invalid_argument("MirroredReplicas: on no devices"));
}

const MirroredReplicas::Built& MirroredReplicas::built() const {
  if (built_ == nullptr) throw_error(Status::failed_precondition("MirroredReplicas: call minimize first"));
  return *built_;
}

const std::vector<AnyOutput>& MirroredReplicas::losses() const { return built().losses; }
const AnyOutput& MirroredReplicas::loss() const { return built().loss; }
const Operation& MirroredReplicas::mirror() const { return built().mirror; }

std::vector<SavedVariable> MirroredReplicas::saved_variables() const {
  GraphStore& graph = *loss().graph();
  const std::vector<NodeId> all_copies = graph.collection(detail::mirrored_copies);
  const std::set<NodeId> copies(all_copies.begin(), all_copies.end());
  std::vector<SavedVariable> saved;
  for (const AnyVariable& variable : dflow::detail::variables_in(graph, "variables")) {
    if (copies.contains(variable.handle().node_id())) continue;
    saved.push_back({variable.whole_name(), variable});
  }
  return saved;
}

Operation MirroredReplicas::build(Graph& graph_of_model, FunctionRef<AnyOutput(std::size_t)> model,
                                  const MinimizeOptions& options, const At& at) {
  if (built_ != nullptr) {
    throw_error(Status::failed_precondition("MirroredReplicas: minimize was called already").with_location(at.where));
  }
  if (!options.variables.empty()) {
    throw_error(Status::invalid_argument("MirroredReplicas: the variables to train are those that the model makes")
                    .with_location(at.where));
  }
  GraphStore& graph = *graph_of_model.store();
  constexpr std::string_view penalties = "regularization_losses";
  GraphStore::Draft draft(graph);
  std::vector<detail::MirroredReplica> replicas(devices_.size());
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    detail::MirroredReplica& replica = replicas[r];
    const ScopeGuard on = enter_device(graph, devices_[r], at.where);
    const ScopeGuard inside = detail::enter_replica(graph, r, replica);
    const std::size_t num_variables = graph.collection("variables").size();
    const std::size_t num_trained = graph.collection("trainable_variables").size();
    const std::size_t num_penalties = graph.collection(penalties).size();
    replica.loss = model(r);
    replica.penalties = graph.take_from_collection(penalties, num_penalties);
    replica.variables = dflow::detail::variables_in(graph, "variables", num_variables);
    replica.trained = dflow::detail::variables_in(graph, "trainable_variables", num_trained);
    detail::require_mirrored(replicas.front(), replica, r, at.where);
    if (replica.trained.empty()) {
      throw_error(
          Status::invalid_argument(str_cat("MirroredReplicas: the model makes no variables to train for replica ", r,
                                           ": it is called once for each, and makes them there"))
              .with_location(at.where));
    }
  }
  // The penalties of the first replica are the model's; each replica has seen only its own.
  for (const NodeId penalty : replicas.front().penalties) graph.add_to_collection(penalties, penalty);
  const ScopeGuard place = enter_place(graph, at.where);
  for (detail::MirroredReplica& replica : replicas) replica.scope.where = graph.scope().where;
  for (detail::MirroredReplica& replica : replicas) {
    const ScopeGuard inside = graph.enter(replica.scope);
    replica.gradients =
        optimizer_->compute_gradients(replica.loss, replica.trained, options.differentiation(), at.where);
  }
  for (std::size_t v = 0; v < replicas.front().gradients.size(); ++v) detail::average(graph, replicas, v, at.where);
  for (detail::MirroredReplica& replica : replicas) {
    const ScopeGuard inside = graph.enter(replica.scope);
    replica.gradients = detail::changed(std::move(replica.gradients), options);
  }

  const auto free_name = [&](std::string_view wanted) {
    return graph.unique_name(wanted).substr(graph.scope().name_prefix.size());
  };
  auto built = std::make_shared<Built>();
  std::vector<Operation> updates;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    detail::MirroredReplica& replica = replicas[r];
    const ScopeGuard inside = graph.enter(replica.scope);
    const std::size_t num_variables = graph.collection("variables").size();
    for (const Operation& update : detail::update_operations_of(replica.loss, options)) updates.push_back(update);
    updates.push_back(optimizer_->update_replica(replica.gradients, r == 0 ? options.global_step : std::nullopt, r == 0,
                                                 {.where = at.where}));
    const std::vector<AnyVariable> slots = dflow::detail::variables_in(graph, "variables", num_variables);
    replica.variables.insert(replica.variables.end(), slots.begin(), slots.end());
    detail::require_mirrored(replicas.front(), replica, r, at.where);
    built->losses.push_back(replica.loss);
  }
  built->loss = dflow::detail::any_all_reduce(built->losses, ReduceBy::mean, {.name = free_name("mean_loss")}).front();

  std::vector<Operation> copied;
  const std::vector<std::string> others(devices_.begin() + 1, devices_.end());
  for (std::size_t v = 0; !others.empty() && v < replicas.front().variables.size(); ++v) {
    const std::vector<AnyOutput> values =
        dflow::detail::any_broadcast_to_devices(replicas.front().variables[v].read_edge(), others);
    for (std::size_t r = 1; r < replicas.size(); ++r) {
      const AnyOutput& handle = replicas[r].variables[v].handle();
      const ScopeGuard beside = enter_colocation(graph, handle.operation());
      copied.push_back(dflow::build<Assign>({handle, values[r - 1]}));
      graph.add_to_collection(detail::mirrored_copies, handle.node_id());
    }
  }
  built->mirror = dflow::detail::no_op_after(graph, copied, {.name = free_name("mirror")});
  const Operation step = group(updates, at);
  draft.publish();
  built_ = std::move(built);
  return step;
}

}  // namespace dflow::train
