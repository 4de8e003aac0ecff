#pragma once

#include <dflow/data/dataset.hpp>
#include <dflow/session/session.hpp>

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace dflow::metrics {
struct StreamingMetric;
}

namespace dflow::train {

/// A scalar under a name: a mean over a batch, or a streaming metric (`metrics::auc`).
struct Metric {
  Metric(std::string of_name, const AnyOutput& mean) : name(std::move(of_name)), value(mean) {}
  /// Each batch updates the metric. `fit` resets it at the beginning of each epoch and of each validation, so its
  /// value is that of the epoch so far.
  template <std::same_as<metrics::StreamingMetric> M>
  Metric(std::string of_name, const M& metric) : name(std::move(of_name)) {
    set(metric);
  }

  std::string name;
  AnyOutput value;  ///< float or double []; of a streaming metric, its `updated`
  Operation reset;  ///< of a streaming metric

 private:
  void set(const metrics::StreamingMetric& metric);
};

struct TrainStepOptions {
  std::vector<Metric> metrics = {};
  /// The loss and metrics of validation, from a model built with Training(false), under the same names as in training.
  /// If empty, validation uses the loss and metrics of training.
  AnyOutput validation_loss = {};
  std::vector<Metric> validation_metrics = {};
  /// Fed true in training and false in validation, if it is not empty.
  Output<bool> training = {};
  /// Runs as a step of its own after each `update_every` batches, and after the last batches of an epoch:
  /// `AccumulatedGradients::update()`.
  Operation update = {};
  std::int64_t update_every = 1;
  /// Runs `update_operations(loss)` with `train`, also if the caller clipped or averaged the gradients of `train`.
  bool run_update_ops = true;
};

/// A TrainStep without the element types of its feeds, for example as a member of a class. `fit` and `evaluate` take it
/// too. Batches of other element types are then errors of the step.
///
/// ```cpp
/// df::train::AnyTrainStep step = df::train::TrainStep(df::feeds(images, labels), loss, train);
/// ```
/// Thread safety: a value type.
struct AnyTrainStep {
  std::vector<AnyOutput> feeds;
  AnyOutput loss;
  Operation train;
  TrainStepOptions options;

  /// Errors: InvalidArgument, as `TrainStep`.
  void check(std::source_location where) const;
};

/// One step of training, as `fit` runs it for each batch: the edges that are fed a batch, the edges to fetch, and the
/// operation to run.
///
/// ```cpp
/// df::train::TrainStep step(df::feeds(images, labels), loss, train, {.metrics = {{"accuracy", accuracy}}});
/// ```
/// feeds: one for each tensor of the batch, in their order, of their element types. loss: float or double [], a mean
/// over the batch. Means over an epoch weigh each batch by its number of rows, the leading dimension of its first
/// tensor.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for edges that are empty or no scalars, for two metrics of one name, for a metric named
/// "loss", and for an update without a number of batches.
template <Element... Ts>
class TrainStep {
 public:
  TrainStep(const FeedList<Ts...>& feeds, const AnyOutput& loss, const Operation& train, TrainStepOptions options = {},
            std::source_location where = std::source_location::current())
      : any_{{feeds.edges.begin(), feeds.edges.end()}, loss, train, std::move(options)} {
    any_.check(where);
  }

  const AnyTrainStep& any() const noexcept { return any_; }
  operator const AnyTrainStep&() const noexcept { return any_; }  // NOLINT(google-explicit-constructor)

 private:
  AnyTrainStep any_;
};

namespace detail {
template <class Parts, class... Ts>
inline constexpr bool feeds_match = false;
template <class... Ps, class... Ts>
  requires(sizeof...(Ps) == sizeof...(Ts))
inline constexpr bool feeds_match<TypeList<Ps...>, Ts...> =
    ((std::same_as<Ps, Ts> || std::same_as<Ps, AnyTensor>)&&...);
}  // namespace detail

/// Elements of a dataset with one tensor for each feed of a TrainStep.
template <class E, class... Ts>
concept BatchFor = data::MadeOfTensors<E> && detail::feeds_match<typename data::Parts<E>::Elements, Ts...>;

namespace detail {
template <class E, class... Ts>
constexpr void require_batch_for() {
  static_assert(BatchFor<E, Ts...>,
                "a batch has one tensor for each feed of the step, of its element type, in the order of the feeds: map "
                "the elements to such tensors first");
}
}  // namespace detail

/// Batches for validation: a dataset, or nothing.
class ValidationData {
 public:
  ValidationData() = default;
  template <data::MadeOfTensors E>
  ValidationData(const data::Dataset<E>& data) : recipe_(data.recipe()), type_(&data::element_type<E>) {}

  bool is_empty() const noexcept { return recipe_ == nullptr; }
  const data::SharedRecipe& recipe() const noexcept { return recipe_; }
  std::size_t num_tensors() const noexcept { return type_->num_tensors; }

 private:
  data::SharedRecipe recipe_;
  const data::ElementType* type_ = nullptr;
};

}  // namespace dflow::train
