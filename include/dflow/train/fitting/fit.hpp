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

/// A call of `fit`, as its hooks see it.
///
/// Thread safety: use it only in the thread that called `fit`.
class Fitting {
 public:
  Session& session() const noexcept { return session_; }
  /// The graph of the step.
  GraphStore& graph() const noexcept { return graph_; }
  /// The epoch, which the iterator of the batches counts from 0, and the number of its batches that have been trained
  /// on.
  std::int64_t epoch() const noexcept { return epoch_; }
  std::int64_t batch() const noexcept { return batch_; }
  /// Steps that this call has run.
  std::int64_t step() const noexcept { return history_.steps; }
  /// The values of the last step or, at the end of an epoch, of the epoch.
  const Values& values() const noexcept { return values_; }
  /// Errors: NotFound if no step has run yet.
  double loss() const;
  /// Shows a number behind the loss in the progress display until the next `show` of that name.
  void show(std::string_view name, double value);
  /// The results so far. At the end of an epoch they include that epoch.
  const History& history() const noexcept { return history_; }

  /// A number that grows with each step of the fit, and with each call of `note_change`.
  std::int64_t version() const noexcept { return history_.steps + num_changes_; }
  /// A hook calls it after it has changed variables: other hooks then save or measure them again.
  void note_change() noexcept { ++num_changes_; }

  /// Makes this step the last. `History::stopped_by` is the reason of the first call.
  void stop(std::string reason);
  bool is_stopped() const noexcept { return is_stopped_; }
  /// Whether a loss that is infinite or NaN has ended the fit (`OnNan`).
  bool is_lost() const noexcept { return is_lost_; }

 private:
  friend class FitLoop;
  Fitting(Session& session, GraphStore& graph) : session_(session), graph_(graph) {}

  Session& session_;
  GraphStore& graph_;
  std::int64_t epoch_ = 0, batch_ = 0;
  Values values_;
  Values shown_;
  History history_;
  std::int64_t num_changes_ = 0;
  bool is_stopped_ = false, is_lost_ = false;
};

/// The request of a hook for one step: an edge to fetch with the step (or an empty edge), and whether to measure the
/// step.
struct Observation {
  AnyOutput edge = {};
  bool trace = false;
};

/// The answer to an `Observation`.
struct Observed {
  AnyTensor value;                ///< of the edge
  const RunMetadata* trace = {};  ///< null unless it was measured
};

/// Functions that `fit` calls on its way; each may be empty. A function may stop the fit, run steps, save or call
/// `fit`. If it throws, the fit ends with that exception. If the `on_begin` of a hook has returned, the hook learns of
/// the end by one call of `on_end` or of `on_error`.
struct Hook {
  std::function<void(Fitting&)> on_begin = {};
  std::function<void(Fitting&)> on_epoch_begin = {};
  std::function<void(Fitting&)> on_step = {};  ///< after each
  /// Called after validation, when the iterator stands at the beginning of the next epoch. Not called for an epoch
  /// that a stop has ended early.
  std::function<void(Fitting&)> on_epoch_end = {};
  /// Called after the last step and before the first `on_end` of any hook, but neither after an error nor after
  /// `FitOptions::stop`, since the fit may go on from its last checkpoint then. A hook that changes variables at the
  /// end does it here, and calls `Fitting::note_change`, so that hooks that save variables see the change.
  std::function<void(Fitting&)> on_finish = {};
  std::function<void(Fitting&)> on_end = {};  ///< also after a stop, but not after an error
  /// Called before `fit` throws an error of the session, the data or a hook, also of the `on_end` of another hook. A
  /// std::exception that is no Error comes as Internal, any other exception as Unknown. An exception from `on_error`
  /// is dropped.
  std::function<void(Fitting&, const Status&)> on_error = {};
  /// Called before each step. An edge fetched with the step has the value for its batch.
  std::function<Observation(const Fitting&)> observe = {};
  std::function<void(Fitting&, const Observed&)> on_observed = {};  ///< after a step with a request of this hook
};

/// What `fit` does after a step of training with an infinite or NaN loss. The step has updated the variables already,
/// unless its optimizer skips such updates (`LossScaleOptimizer`). `TrainStepOptions::update` does not run any more.
enum class OnNan : std::uint8_t {
  fail,   ///< throws InvalidArgument; no further function of a hook runs, but `on_error`
  stop,   ///< makes the step the last; `History::stopped_by` says the same as the error
  go_on,  ///< nothing
};

struct FitOptions {
  /// `fit` ends before this epoch of the iterator. An iterator restored in epoch 2 goes on with the rest of epoch 2.
  std::int64_t epochs = 1;
  /// `fit` ends after this number of steps; none: only `epochs` counts. Data without an end need it.
  std::optional<std::int64_t> max_steps = {};
  /// Evaluated after each epoch: `{.validation = test}`.
  ValidationData validation = {};
  /// Called in this order.
  std::vector<Hook> hooks = {};
  /// Ends the fit after the step under way.
  std::stop_token stop = {};
  /// Shows the progress of the fit.
  std::optional<ProgressOptions> progress = {};
  /// For a loss of training that is infinite or NaN. The error names the step, the epoch and batch, the inputs and rows
  /// of the batch that are not finite, and the variables that are not (`NonFiniteVariables`). `fit` looks at inputs and
  /// variables only then. A batch without rows may have a loss of NaN.
  OnNan on_nan = OnNan::fail;
};

namespace detail {
History fit(Session& session, const AnyTrainStep& step, data::AnyIterator& batches, const FitOptions& options);
Values evaluate(Session& session, const AnyTrainStep& step, const ValidationData& data);
/// Errors: InvalidArgument for a step that no TrainStep could be, and unless a batch has a tensor for each feed.
void require_tensors(const AnyTrainStep& step, std::size_t num_tensors);
}  // namespace detail

/// Trains with one step for each batch, epoch by epoch, until the iterator is at epoch `options.epochs` or the fit is
/// stopped.
///
/// ```cpp
/// df::data::Iterator batches = data.iterate();
/// df::train::History history = df::train::fit(session, step, batches, {.epochs = 5, .validation = test});
/// double accuracy = history.last("validation_accuracy");
/// ```
/// The iterator may have been restored, and may be part of a checkpoint (`saved_iterator`). The fit begins with the
/// rest of its epoch, and the means of that epoch are over the rest.
///
/// Blocks.
/// Errors: InvalidArgument for no epochs, for empty data, for validation data that do not fit the feeds of the step,
/// and for a loss that is infinite or NaN (`FitOptions::on_nan`). Errors of the data have the number of the epoch and
/// batch before the message; an exception that is no Error becomes an Error with the exception nested in it. Errors of
/// the session and of hooks come as they are.
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

/// The same with a step whose feeds have types that are known at run time.
template <data::MadeOfTensors E>
History fit(Session& session, const AnyTrainStep& step, data::Iterator<E>& batches, const FitOptions& options = {}) {
  detail::require_tensors(step, data::element_type<E>.num_tensors);
  return detail::fit(session, step, batches.any(), options);
}
template <data::MadeOfTensors E>
History fit(Session& session, const AnyTrainStep& step, const data::Dataset<E>& data, const FitOptions& options = {}) {
  data::Iterator<E> batches = data.iterate();
  return fit(session, step, batches, options);
}

/// The means of the loss and metrics over a dataset, with the step's validation loss and metrics. Trains nothing.
///
/// Blocks. Errors: as `fit`.
template <class E, Element... Ts>
Values evaluate(Session& session, const TrainStep<Ts...>& step, const data::Dataset<E>& data) {
  detail::require_batch_for<E, Ts...>();
  return detail::evaluate(session, step.any(), data);
}
template <data::MadeOfTensors E>
Values evaluate(Session& session, const AnyTrainStep& step, const data::Dataset<E>& data) {
  detail::require_tensors(step, data::element_type<E>.num_tensors);
  return detail::evaluate(session, step, data);
}

}  // namespace dflow::train
