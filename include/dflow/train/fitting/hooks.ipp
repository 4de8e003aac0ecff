#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/train/fitting/hooks.hpp>
#include <dflow/train/saving/variable_values.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace dflow::train {

namespace detail {

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {}

  void begin() {
    if (options_.patience < 1) {
      throw_error(Status::invalid_argument(str_cat("early_stopping: a patience of ", options_.patience, " epochs")));
    }
    best_.reset();
    waited_ = 0;
  }
  void end_epoch(Fitting& fitting) {
    const double value = fitting.history().last(options_.value);
    if (is_better(value)) {
      best_ = value;
      waited_ = 0;
      if (options_.restore_best) keep(fitting);
      return;
    }
    if (++waited_ < options_.patience) return;
    fitting.stop(
        str_cat("'", options_.value, "' has not become better in ", waited_, waited_ == 1 ? " epoch" : " epochs"));
  }
  void finish(Fitting& fitting) {
    if (!best_ || !values_) return;
    values_->assign(fitting.session());
    fitting.note_change();
  }

 private:
  void keep(Fitting& fitting) {
    GraphStore& graph = fitting.graph();
    const std::size_t num_variables = graph.collection("variables").size();
    if (!values_ || graph_.lock() != graph.keep_nodes() || num_variables_ != num_variables) values_.emplace(graph);
    graph_ = graph.keep_nodes();
    num_variables_ = num_variables;
    values_->read(fitting.session());
  }
  bool is_better(double value) const {
    if (std::isnan(value)) return false;
    if (!best_) return true;
    return options_.larger_is_better ? value - options_.min_delta > *best_ : value + options_.min_delta < *best_;
  }

  EarlyStoppingOptions options_;
  std::optional<double> best_;
  std::optional<VariableValues> values_;
  std::weak_ptr<const NodeList> graph_;  ///< that `values_` are of; an address would say nothing of one that is gone
  std::size_t num_variables_ = 0;        ///< of them
  std::int64_t waited_ = 0;
};

class Checkpoints {
 public:
  Checkpoints(Saver& saver, std::string prefix, CheckpointOptions options)
      : saver_(saver), prefix_(std::move(prefix)), options_(std::move(options)) {}

  void begin() { saved_ = -1; }
  void end_step(const Fitting& fitting) {
    if (options_.every_steps > 0 && fitting.step() % options_.every_steps == 0) save(fitting);
  }
  void end_epoch(const Fitting& fitting) {
    // Also where it was saved after the last step: the iterator has gone on since.
    if (options_.every_epochs > 0 && (fitting.epoch() + 1) % options_.every_epochs == 0) save(fitting);
  }
  void end(const Fitting& fitting) {
    if (options_.at_end && saved_ != fitting.version() && fitting.step() > 0) save(fitting);
  }

 private:
  void save(const Fitting& fitting) {
    const std::int64_t number =
        options_.global_step ? fitting.session().run(*options_.global_step).scalar() : fitting.step();
    saver_.save(fitting.session(), prefix_, number);
    saved_ = fitting.version();
  }

  Saver& saver_;
  std::string prefix_;
  CheckpointOptions options_;
  std::int64_t saved_ = -1;  ///< version of the variables that were saved last
};

}  // namespace detail

Hook early_stopping(EarlyStoppingOptions options) {
  const auto shared = std::make_shared<detail::EarlyStopping>(std::move(options));
  return {.on_begin = [shared](Fitting&) { shared->begin(); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); },
          .on_finish = [shared](Fitting& fitting) { shared->finish(fitting); }};
}

Hook checkpoints(Saver& saver, std::string prefix, CheckpointOptions options) {
  if (options.every_steps < 0 || options.every_epochs < 0) {
    throw_error(Status::invalid_argument(
        str_cat("checkpoints: every ", std::min<std::int64_t>(options.every_steps, options.every_epochs), " of them")));
  }
  const auto shared = std::make_shared<detail::Checkpoints>(saver, std::move(prefix), std::move(options));
  return {.on_begin = [shared](Fitting&) { shared->begin(); },
          .on_step = [shared](Fitting& fitting) { shared->end_step(fitting); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); },
          .on_end = [shared](Fitting& fitting) { shared->end(fitting); }};
}

}  // namespace dflow::train
