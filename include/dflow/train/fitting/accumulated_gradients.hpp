#pragma once

#include <dflow/train/optimizer.hpp>

namespace dflow::train {

/// Gradients of several batches, added up for one update by their mean: the update of one batch as large as all of
/// them, if the loss is a mean and the batches are of one size.
///
/// ```cpp
/// df::train::AccumulatedGradients accumulated(df::train::Adam(1e-3f), loss);
/// df::train::TrainStep step(df::feeds(x, y), loss, accumulated.add(), {.update = accumulated.update(), .update_every =
/// 4});
/// ```
/// The sums are variables beside the trained ones, "w/accumulated", in float where those have 16 bits, and so part of
/// checkpoints. A sparse gradient is added to the rows that it names; the update is that of a dense one.
///
/// Thread safety: const after construction; `add` and `update` are not to run at once.
/// Errors: those of `Optimizer`.
class AccumulatedGradients {
 public:
  AccumulatedGradients(const Optimizer& optimizer, const AnyOutput& loss, const MinimizeOptions& options = {},
                       const At& at = {});

  /// Adds the gradients of a batch: fed what the loss is.
  const Operation& add() const noexcept { return add_; }
  /// Updates the variables, if anything was added, and begins with zeros; a step of its own. Else nothing changes: no
  /// slot and no global step either.
  const Operation& update() const noexcept { return update_; }

 private:
  Operation add_, update_;
};

}  // namespace dflow::train
