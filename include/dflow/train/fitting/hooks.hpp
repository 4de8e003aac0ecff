#pragma once

#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/fitting/fit.hpp>
#include <dflow/train/saving/saver.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace dflow::train {

struct EarlyStoppingOptions {
  std::string value = "validation_loss";  ///< of an epoch
  bool larger_is_better = false;
  /// Stops after this number of epochs in a row without a value better than the best.
  std::int64_t patience = 1;
  /// A value counts as better only if it is better than the best by more than this.
  double min_delta = 0;
  /// At the end all variables, also those of the optimizer and counters, get the values that they had at the end of
  /// the best epoch. This process keeps the values until then.
  /// After `FitOptions::stop` they keep their values, so that the fit can go on later.
  bool restore_best = false;
};

/// Stops a `fit` if the value of an epoch has not become better for a while, as Keras's EarlyStopping does. A value of
/// NaN is never better.
///
/// Errors, in the fit: InvalidArgument for a patience below 1, NotFound for a value that epochs do not have.
Hook early_stopping(EarlyStoppingOptions options = {});

struct ReduceOnPlateauOptions {
  std::string value = "validation_loss";  ///< of an epoch
  bool larger_is_better = false;
  double factor = 0.1;         ///< of the rate, in (0, 1)
  std::int64_t patience = 10;  ///< reduces after this number of epochs in a row without a better value
  double min_delta = 1e-4;     ///< as of EarlyStoppingOptions
  std::int64_t cooldown = 0;   ///< after a reduction, this number of epochs does not count for the patience
  double min_rate = 0;         ///< the rate does not become smaller
};

namespace detail {
Hook reduce_on_plateau(const AnyVariable& rate, ReduceOnPlateauOptions options);
}  // namespace detail

/// Multiplies a learning rate by a factor if the value of an epoch has not become better for a while, as Keras's
/// ReduceLROnPlateau does. A value of NaN is never better. The rate is a variable, so it is part of checkpoints.
///
/// ```cpp
/// df::Variable<float> rate(graph, 0.1f, {.name = "rate", .trainable = false});
/// auto train = df::train::GradientDescent(rate).minimize(loss);
/// df::train::fit(session, step, rows,
///                {.epochs = 50, .validation = test, .hooks = {df::train::reduce_on_plateau(rate)}});
/// ```
/// Adds its nodes once, to the graph of the variable. Each `fit` begins anew with the present rate.
///
/// Errors: InvalidArgument for numbers outside their ranges, and for a rate that is no scalar. In the fit: NotFound for
/// a value that epochs do not have.
template <std::floating_point T>
Hook reduce_on_plateau(const Variable<T>& rate, ReduceOnPlateauOptions options = {}) {
  return detail::reduce_on_plateau(rate.any_variable(), std::move(options));
}

struct CheckpointOptions {
  std::int64_t every_steps = 0;   ///< of the fit; 0: never within an epoch
  std::int64_t every_epochs = 1;  ///< 0: never after one
  /// Saves at the end unless it just has. The variables are those that `fit` leaves: with `restore_best` of early
  /// stopping, the best epoch's.
  bool at_end = true;
  /// Numbers the checkpoints; none: the steps of the fit number them.
  std::optional<Variable<std::int64_t>> global_step = {};
  /// Saves after an epoch only if this value of the epoch is better than in each epoch that the `fit` saved before, and
  /// nothing at the end: `save_best_only` of Keras's ModelCheckpoint. A value of NaN is never better. Empty: saves
  /// whatever the values are.
  std::string best_of = {};
  bool larger_is_better = false;
  /// Fails, instead of saving, if a variable is not finite (`NonFiniteVariables`), so that the checkpoints before stay.
  bool only_finite = true;
};

/// Saves checkpoints during a `fit`: the variables and, if the options of the saver name it (`saved_iterator`), the
/// position in the batches. After a loss that ends the fit (`OnNan::stop`) nothing is saved, unless another hook has
/// restored good variables. Errors: InvalidArgument for numbers below 0, and for `best_of` with `every_steps` or
/// without `every_epochs`.
///
/// Errors, in the fit: as `Saver::save`; InvalidArgument, with their names, for variables that are not finite; NotFound
/// for a value that epochs do not have; FailedPrecondition if the saver is gone.
Hook checkpoints(Saver& saver, std::string prefix, CheckpointOptions options = {});

}  // namespace dflow::train
