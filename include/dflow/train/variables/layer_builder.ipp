#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/variables/layer_builder.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <utility>

namespace dflow::detail {

[[noreturn]] void reject_layer(std::string_view layer, const std::string& message, const At& at) {
  throw_error(Status::invalid_argument(str_cat(layer, ": ", message)).with_location(at.where));
}

std::int64_t known_channels(const AnyOutput& x, int min_rank, int max_rank_allowed, std::string_view layer,
                            const At& at) {
  if (!x.is_valid()) reject_layer(layer, "the input is an empty Output", at);
  const PartialShape& shape = x.shape();
  if (!shape.has_rank() || shape.rank() < min_rank || shape.rank() > max_rank_allowed ||
      shape.dim(shape.rank() - 1) == dynamic) {
    reject_layer(layer,
                 str_cat("the input must have rank ", min_rank, min_rank == max_rank_allowed ? "" : " or more",
                         " and a known last dimension, its shape is ", shape.to_string()),
                 at);
  }
  return shape.dim(shape.rank() - 1);
}

void require_positive(std::int64_t value, std::string_view what, std::string_view layer, const At& at) {
  if (value < 1) reject_layer(layer, str_cat(what, " must be positive, is ", value), at);
}

ScopeGuard enter_layer(GraphStore& graph, const LayerState& state, const At& at) {
  return enter_name_scope(graph, at.name.empty() ? std::string_view(state.name) : at.name, at.where);
}

LayerBuilder::LayerBuilder(LayerState& state, GraphStore& graph, DType inputs, const At& at)
    : state_(state), graph_(graph), inputs_(inputs), compute_(inputs), at_(at), variables_(open_variable_scope(graph)) {
  is_mixed_ = variables_ != nullptr && variables_->compute != DType::invalid && inputs != DType::float64;
  if (is_mixed_) compute_ = variables_->compute;
  if (is_first_call()) {
    draft_.emplace(graph);
    return;
  }
  if (graph.keep_nodes() != state.graph.lock()) {
    reject_layer(state.name, "the input is of another graph than the layer's variables", at);
  }
  if (inputs != state.dtype) {
    reject_layer(state.name,
                 str_cat("the layer was made for inputs of ", dtype_name(state.dtype), ", got ", dtype_name(inputs)),
                 at);
  }
  // If the layer's scope is opened again, later layers get the same names as they had there.
  if (variables_ != nullptr && !state.scope_name.empty() && variables_->path == state.scope_path) {
    variables_->taken.insert(state.scope_name);
  }
}

LayerBuilder::~LayerBuilder() {
  if (takes_name_) variables_->taken.erase(made_.scope_name);
}

AnyVariable LayerBuilder::make(std::string_view name, DType dtype, const Shape& shape, const Initializer& initializer,
                               const Regularizer& regularizer, bool trainable) {
  FoundVariable found;
  if (variables_ == nullptr) {
    found = make_variable(graph_, graph_.scope().name_prefix, name, dtype, shape, initializer, regularizer, at_);
  } else {
    if (made_.scope_name.empty()) {
      made_.scope_path = variables_->path;
      takes_name_ = at_.name.empty() || !variables_->taken.contains(at_.name);
      made_.scope_name = at_.name.empty() ? variables_->take_name(state_.name) : std::string(at_.name);
      variables_->taken.insert(made_.scope_name);
    }
    found =
        find_or_make_variable(graph_, *variables_, str_cat(made_.scope_name, "/", name), dtype, shape,
                              {.initializer = initializer, .regularizer = regularizer, .trainable = trainable}, at_);
  }
  made_.variables.push_back({std::string(name), found.variable, trainable});
  if (!found.is_new) return found.variable;
  list("variables", found.variable.handle().node_id());
  if (trainable) list("trainable_variables", found.variable.handle().node_id());
  if (found.regularization_loss.is_valid()) {
    made_.regularization_losses.push_back(found.regularization_loss);
    list("regularization_losses", found.regularization_loss.node_id());
  }
  return found.variable;
}

AnyVariable LayerBuilder::variable(std::string_view name) const {
  return find_variable(is_first_call() ? made_ : state_, name);
}

AnyOutput LayerBuilder::input(const AnyOutput& x) const {
  // A tensor that another layer has widened was narrow before, so it loses nothing if it becomes narrow again.
  if (x.dtype() != compute_ && is_16_bit_float(compute_) && x.dtype() == DType::float32 &&
      x.node().op == &op_def<Cast>) {
    const AnyOutput narrow(x.graph(), x.node().inputs[0]);
    if (narrow.dtype() == compute_) return narrow;
  }
  return cast_to(x, compute_);
}

AnyOutput LayerBuilder::value(std::string_view name) const {
  const AnyVariable of = variable(name);
  const AnyOutput now = of.read_edge();
  if (now.dtype() == compute_ || !graph_.scope().function.is_valid()) return cast_to(now, compute_);
  // Entered once around the body that is being built, and not in each of its iterations.
  GraphStore::Scope outside = graph_.scope();
  outside.control_inputs.clear();
  outside.function = NodeId();
  outside.foreign = nullptr;
  outside.name_prefix = of.name() + "/";
  const ScopeGuard around = graph_.enter(std::move(outside));
  return cast_to(now, compute_);
}

AnyOutput LayerBuilder::result(const AnyOutput& y) const { return cast_to(y, inputs_); }

void LayerBuilder::commit() {
  for (const auto& [collection, node] : listed_) graph_.add_to_collection(collection, node);
  if (!is_first_call()) return;
  takes_name_ = false;
  state_.scope_path = std::move(made_.scope_path);
  state_.scope_name = std::move(made_.scope_name);
  if (!at_.name.empty()) state_.name = at_.name;
  state_.variables = std::move(made_.variables);
  state_.regularization_losses = std::move(made_.regularization_losses);
  state_.dtype = inputs_;
  state_.graph = graph_.keep_nodes();
  graph_.on_drop([made = state_.weak_from_this()] {
    const std::shared_ptr<LayerState> layer = made.lock();
    if (layer == nullptr) return;
    layer->variables.clear();
    layer->regularization_losses.clear();
  });
  draft_->publish();
}

}  // namespace dflow::detail
