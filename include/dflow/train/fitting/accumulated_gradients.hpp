#pragma once

#include <dflow/train/optimizer.hpp>

namespace dflow::train {

/// Adds up the gradients of several batches for one update by their mean. If the loss is a mean and the batches have
/// one size, the update equals the update of one batch as large as all of them.
///
/// ```cpp
/// df::train::AccumulatedGradients accumulated(df::train::Adam(1e-3f), loss);
/// df::train::TrainStep step(df::feeds(x, y), loss, accumulated.add(), {.update = accumulated.update(), .update_every =
/// 4});
/// ```
/// The sums are variables beside the trained variables, "w/accumulated", and so part of checkpoints. The sum for a
/// 16-bit variable is float. A sparse gradient is added to the rows that it names; the update is dense.
///
/// Thread safety: const after construction; `add` and `update` are not to run at once.
/// Errors: as `Optimizer`.
class AccumulatedGradients {
 public:
  AccumulatedGradients(const Optimizer& optimizer, const AnyOutput& loss, const MinimizeOptions& options = {},
                       const At& at = {});

  /// Adds the gradients of a batch. It needs the same feeds as the loss.
  const Operation& add() const noexcept { return add_; }
  /// Updates the variables and sets the sums to zero; run it as a step of its own. If nothing was added, nothing
  /// changes, not even a slot or the global step.
  const Operation& update() const noexcept { return update_; }

 private:
  Operation add_, update_;
};

}  // namespace dflow::train
