#pragma once

#include <dflow/base/status.hpp>
#include <dflow/train/fitting/history.hpp>
#include <dflow/train/fitting/train_step.hpp>
#include <dflow/train/progress.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// A call of `fit` as its hooks see it.
///
/// Thread safety: the thread of the call.
class Fitting {
 public:
  Session& session() const noexcept { return session_; }
  /// The graph of the step.
  GraphStore& graph() const noexcept { return graph_; }
  /// The epoch, counted from 0 by the iterator of the batches, and how many of its batches have been trained on.
  std::int64_t epoch() const noexcept { return epoch_; }
  std::int64_t batch() const noexcept { return batch_; }
  /// Steps that this call has run.
  std::int64_t step() const noexcept { return history_.steps; }
  /// Of the step that was run last, or, at the end of an epoch, of the epoch.
  const Values& values() const noexcept { return values_; }
  /// Errors: NotFound where no step has run yet.
  double loss() const;
  /// Shows a number behind the loss, where the fit shows its progress, until it is shown anew.
  void show(std::string_view name, double value);
  /// At the end of an epoch it is in it already.
  const History& history() const noexcept { return history_; }

  /// This step is the last. `History::stopped_by` is the reason that was given first.
  void stop(std::string reason);
  bool is_stopped() const noexcept { return is_stopped_; }

 private:
  friend class FitLoop;
  Fitting(Session& session, GraphStore& graph) : session_(session), graph_(graph) {}

  Session& session_;
  GraphStore& graph_;
  std::int64_t epoch_ = 0, batch_ = 0;
  Values values_;
  Values shown_;
  History history_;
  bool is_stopped_ = false;
};

/// What a hook wants to see of a step: an edge to fetch with it, or an empty one, and whether to measure it.
struct Observation {
  AnyOutput edge = {};
  bool trace = false;
};

/// What it has seen.
struct Observed {
  AnyTensor value;                ///< of the edge
  const RunMetadata* trace = {};  ///< null unless it was measured
};

/// What is called on the way of a `fit`; any may be empty. They may stop it, run steps, save, call `fit`; what they
/// throw ends it and comes out of it. A hook whose `on_begin` has returned learns of the end: by one call of `on_end`,
/// or of `on_error`.
struct Hook {
  std::function<void(Fitting&)> on_begin = {};
  std::function<void(Fitting&)> on_epoch_begin = {};
  std::function<void(Fitting&)> on_step = {};  ///< after each
  /// After validation. The iterator stands at the beginning of the next epoch. Not called for an epoch that a stop has
  /// ended early.
  std::function<void(Fitting&)> on_epoch_end = {};
  std::function<void(Fitting&)> on_end = {};  ///< also when it was stopped, but not after an error
  /// What ends it comes out of it next: an error of the session, the data or a hook, also of another's `on_end`. A
  /// std::exception that is no Error comes as Internal, anything else as Unknown. What this throws is dropped.
  std::function<void(Fitting&, const Status&)> on_error = {};
  /// Before each step. An edge fetched with it has the value for its batch.
  std::function<Observation(const Fitting&)> observe = {};
  std::function<void(Fitting&, const Observed&)> on_observed = {};  ///< after a step of which something was wanted
};

struct FitOptions {
  /// The iterator's epoch to end before: one that was restored in epoch 2 goes on with the rest of that.
  std::int64_t epochs = 1;
  /// Steps after which it ends; none: only by the epochs. Needed for data without an end.
  std::optional<std::int64_t> max_steps = {};
  /// Gone through after each epoch: `{.validation = test}`.
  ValidationData validation = {};
  /// Called in this order.
  std::vector<Hook> hooks = {};
  /// Ends it after the step under way.
  std::stop_token stop = {};
  /// Shows how far it is.
  std::optional<ProgressOptions> progress = {};
};

namespace detail {
History fit(Session& session, const AnyTrainStep& step, data::AnyIterator& batches, const FitOptions& options);
Values evaluate(Session& session, const AnyTrainStep& step, const ValidationData& data);
}  // namespace detail

/// Trains: a step for each batch, epoch by epoch, until the iterator is at epoch `options.epochs` or it is stopped.
///
/// ```cpp
/// df::data::Iterator batches = data.iterate();
/// df::train::History history = df::train::fit(session, step, batches, {.epochs = 5, .validation = test});
/// double accuracy = history.last("validation_accuracy");
/// ```
/// The iterator may have been restored, and be part of a checkpoint (`saved_iterator`): what is left of its epoch comes
/// first, and the means of that epoch are of the rest.
///
/// Blocks. Errors: InvalidArgument for no epochs, data that are empty, or validation data that do not fit the step's
/// feeds; those of the data, with the number of epoch and batch before the message (what is no Error becomes one, with
/// what was thrown nested in it); those of the session and of hooks as they are.
template <class E, Element... Ts>
History fit(Session& session, const TrainStep<Ts...>& step, data::Iterator<E>& batches,
            const FitOptions& options = {}) {
  detail::require_batch_for<E, Ts...>();
  return detail::fit(session, step.any(), batches.any(), options);
}
/// The same from the first epoch on.
template <class E, Element... Ts>
History fit(Session& session, const TrainStep<Ts...>& step, const data::Dataset<E>& data,
            const FitOptions& options = {}) {
  detail::require_batch_for<E, Ts...>();
  data::Iterator<E> batches = data.iterate();
  return detail::fit(session, step.any(), batches.any(), options);
}

/// The means of loss and metrics over a dataset, by what the step says of validation. Trains nothing.
///
/// Blocks. Errors: as `fit`.
template <class E, Element... Ts>
Values evaluate(Session& session, const TrainStep<Ts...>& step, const data::Dataset<E>& data) {
  detail::require_batch_for<E, Ts...>();
  return detail::evaluate(session, step.any(), data);
}

}  // namespace dflow::train
