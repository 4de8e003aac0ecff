#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/train/fitting/hooks.hpp>
#include <dflow/train/saving/variable_values.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace dflow::train {

namespace detail {

/// The best value of an epoch so far.
class BestValue {
 public:
  BestValue(bool larger_is_better, double min_delta) : larger_is_better_(larger_is_better), min_delta_(min_delta) {}

  void forget() { best_.reset(); }
  bool has_value() const { return best_.has_value(); }
  /// Takes a value that is better; false for any other value, and for NaN.
  bool take(double value) {
    if (std::isnan(value)) return false;
    const bool is_better = !best_ || (larger_is_better_ ? value - min_delta_ > *best_ : value + min_delta_ < *best_);
    if (is_better) best_ = value;
    return is_better;
  }

 private:
  bool larger_is_better_;
  double min_delta_;
  std::optional<double> best_;
};

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options)
      : options_(std::move(options)), best_(options_.larger_is_better, options_.min_delta) {}

  void begin() {
    if (options_.patience < 1) {
      throw_error(Status::invalid_argument(str_cat("early_stopping: a patience of ", options_.patience, " epochs")));
    }
    best_.forget();
    waited_ = 0;
  }
  void end_epoch(Fitting& fitting) {
    if (best_.take(fitting.history().last(options_.value))) {
      waited_ = 0;
      if (options_.restore_best) keep(fitting);
      return;
    }
    if (++waited_ < options_.patience) return;
    fitting.stop(
        str_cat("'", options_.value, "' has not become better in ", waited_, waited_ == 1 ? " epoch" : " epochs"));
  }
  void finish(Fitting& fitting) {
    if (!best_.has_value() || !values_) return;
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

  EarlyStoppingOptions options_;
  BestValue best_;
  std::optional<VariableValues> values_;
  std::weak_ptr<const NodeList> graph_;  ///< that `values_` are of; an address would say nothing of one that is gone
  std::size_t num_variables_ = 0;        ///< of them
  std::int64_t waited_ = 0;
};

class Checkpoints {
 public:
  Checkpoints(Saver& saver, std::string prefix, CheckpointOptions options)
      : saver_(saver), prefix_(std::move(prefix)), options_(std::move(options)), best_(options_.larger_is_better, 0) {}

  void begin() {
    saved_ = -1;
    best_.forget();
  }
  void end_step(const Fitting& fitting) {
    if (options_.every_steps > 0 && fitting.step() % options_.every_steps == 0) save(fitting);
  }
  void end_epoch(const Fitting& fitting) {
    if (options_.every_epochs == 0 || (fitting.epoch() + 1) % options_.every_epochs != 0) return;
    if (!saves_best() || best_.take(fitting.history().last(options_.best_of))) {
      // Also where it was saved after the last step: the iterator has gone on since.
      save(fitting);
    }
  }
  void end(const Fitting& fitting) {
    if (options_.at_end && !saves_best() && saved_ != fitting.version() && fitting.step() > 0) save(fitting);
  }

 private:
  bool saves_best() const { return !options_.best_of.empty(); }
  void save(const Fitting& fitting) {
    const std::int64_t number =
        options_.global_step ? fitting.session().run(*options_.global_step).scalar() : fitting.step();
    saver_.save(fitting.session(), prefix_, number);
    saved_ = fitting.version();
  }

  Saver& saver_;
  std::string prefix_;
  CheckpointOptions options_;
  BestValue best_;
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
  if (!options.best_of.empty() && (options.every_steps > 0 || options.every_epochs == 0)) {
    throw_error(Status::invalid_argument(str_cat("checkpoints: the best of '", options.best_of,
                                                 "' is known after epochs: every ", options.every_steps,
                                                 " steps, every ", options.every_epochs, " epochs")));
  }
  const auto shared = std::make_shared<detail::Checkpoints>(saver, std::move(prefix), std::move(options));
  return {.on_begin = [shared](Fitting&) { shared->begin(); },
          .on_step = [shared](Fitting& fitting) { shared->end_step(fitting); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); },
          .on_end = [shared](Fitting& fitting) { shared->end(fitting); }};
}

}  // namespace dflow::train
