#pragma once

#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/trace/events/event_file.hpp>
#include <dflow/train/fitting/fit.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dflow::train {

struct SummariesOptions {
  /// Steps of the fit between two that are looked at; 0: none is.
  std::int64_t every_steps = 100;
  /// What is written of them, computed with the step for its batch; none: what the graph's collection of summaries has
  /// when the fit begins (`merge_all_summaries`), if anything.
  Output<std::string> summary = {};
  /// Writes their loss and metrics as "step/loss" and so on.
  bool step_values = true;
  /// Writes the loss and metrics of each epoch, those of validation too, as "epoch/loss", "epoch/validation_loss".
  bool epoch_values = true;
  /// Writes the graph when the fit begins.
  bool graph = true;
  /// Steps of the fit between two that are measured, node by node, for the graph's page; 0: none is. The first is the
  /// second step: the first one compiles.
  std::int64_t trace_every_steps = 0;
  /// Tags of scalars of `summary` that the progress bar shows behind the loss.
  std::vector<std::string> shown = {};
  /// What events are numbered by; none: by the steps of the fit. With it, a fit that begins at step n says so, and
  /// TensorBoard drops what was written of later ones.
  std::optional<Variable<std::int64_t>> global_step = {};
};

/// Writes how a `fit` goes for TensorBoard. The writer outlives the hook; what was added can be read when the fit ends,
/// also by an error, and meanwhile as often as its options say.
///
/// ```cpp
/// df::EventWriter events(files, "logs/run1", clock);
/// df::train::fit(session, step, data, {.epochs = 5, .hooks = {df::train::summaries(events, {.every_steps = 50})}});
/// ```
/// Errors, in the fit: InvalidArgument for fewer than 0 steps; those of EventWriter, and of the summaries.
Hook summaries(EventWriter& events, SummariesOptions options = {});

}  // namespace dflow::train
