#pragma once

#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/fitting/fit.hpp>
#include <dflow/train/saving/saver.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dflow::train {

struct EarlyStoppingOptions {
  std::string value = "validation_loss";  ///< of an epoch
  bool larger_is_better = false;
  /// Epochs in a row without a value that is better than the best: after so many it stops.
  std::int64_t patience = 1;
  /// What is not better by more than this is not better.
  double min_delta = 0;
  /// At the end all variables, those of the optimizer and counters too, get the values that they had at the end of the
  /// best epoch. They are kept in this process meanwhile.
  bool restore_best = false;
};

/// Stops a `fit` when an epoch's value has not become better for a while, as Keras's EarlyStopping. What is no number
/// is not better.
///
/// Errors, in the fit: InvalidArgument for less patience than 1, NotFound for a value that epochs do not have.
Hook early_stopping(EarlyStoppingOptions options = {});

struct CheckpointOptions {
  std::int64_t every_steps = 0;   ///< of the fit; 0: never within an epoch
  std::int64_t every_epochs = 1;  ///< 0: never after one
  bool at_end = true;             ///< unless it was just saved
  /// What checkpoints are numbered by; none: by the steps of the fit.
  std::optional<Variable<std::int64_t>> global_step = {};
};

/// Saves a `fit` on its way: variables and, where the saver's options name it (`saved_iterator`), the position of the
/// batches. The saver outlives the hook. Errors: InvalidArgument for numbers below 0.
///
/// Errors, in the fit: those of `Saver::save`.
Hook checkpoints(Saver& saver, std::string prefix, CheckpointOptions options = {});

}  // namespace dflow::train
