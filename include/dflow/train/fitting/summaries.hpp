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
  /// A summary is written every `every_steps` steps of the fit; 0: none is.
  std::int64_t every_steps = 100;
  /// The summary to write, computed with the step for its batch. None: all that the graph's collection of summaries
  /// holds when the fit begins (`merge_all_summaries`), if anything.
  Output<std::string> summary = {};
  /// Writes the loss and metrics of the same steps as "step/loss" and so on.
  bool step_values = true;
  /// Writes the loss and metrics of each epoch, also of validation, as "epoch/loss", "epoch/validation_loss".
  bool epoch_values = true;
  /// Writes the graph when the fit begins.
  bool graph = true;
  /// Every `trace_every_steps` steps of the fit, a step is measured node by node for the graph's page; 0: none is. The
  /// second step is the first measured step, since the first step compiles.
  std::int64_t trace_every_steps = 0;
  /// Tags of scalars of `summary` that the progress bar shows behind the loss.
  std::vector<std::string> shown = {};
  /// Numbers the events; none: the steps of the fit number them. With it, a fit that begins at step n says so, and
  /// TensorBoard drops the events of step n and later steps that were written before.
  std::optional<Variable<std::int64_t>> global_step = {};
};

/// Writes the progress of a `fit` for TensorBoard. Events can be read when the fit ends, also by an error, and before
/// then as often as the options of the writer flush them.
///
/// ```cpp
/// df::EventWriter events(files, "logs/run1", clock);
/// df::train::fit(session, step, data, {.epochs = 5, .hooks = {df::train::summaries(events, {.every_steps = 50})}});
/// ```
/// Errors, in the fit: InvalidArgument for fewer than 0 steps; FailedPrecondition if the writer is gone; errors of
/// EventWriter and of the summaries.
Hook summaries(EventWriter& events, SummariesOptions options = {});

}  // namespace dflow::train
