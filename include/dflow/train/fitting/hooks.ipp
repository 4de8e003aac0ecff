#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/train/finite.hpp>
#include <dflow/train/fitting/hooks.hpp>
#include <dflow/train/saving/variable_values.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/// Nodes of one graph after another, which are made again if the graph is another one or has more variables.
template <class Nodes>
class NodesOfGraph {
 public:
  Nodes& in(GraphStore& graph) {
    const std::size_t num_variables = graph.collection("variables").size();
    if (!nodes_ || graph_.lock() != graph.keep_nodes() || num_variables_ != num_variables) nodes_.emplace(graph);
    graph_ = graph.keep_nodes();
    num_variables_ = num_variables;
    return *nodes_;
  }
  const std::optional<Nodes>& last() const noexcept { return nodes_; }

 private:
  std::optional<Nodes> nodes_;
  std::weak_ptr<const NodeList> graph_;  ///< an address would say nothing of a graph that is gone
  std::size_t num_variables_ = 0;
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
      if (options_.restore_best) values_.in(fitting.graph()).read(fitting.session());
      return;
    }
    if (++waited_ < options_.patience) return;
    fitting.stop(
        str_cat("'", options_.value, "' has not become better in ", waited_, waited_ == 1 ? " epoch" : " epochs"));
  }
  void finish(Fitting& fitting) {
    if (!best_.has_value() || !values_.last()) return;
    values_.last()->assign(fitting.session());
    fitting.note_change();
  }

 private:
  EarlyStoppingOptions options_;
  BestValue best_;
  NodesOfGraph<VariableValues> values_;
  std::int64_t waited_ = 0;
};

class ReduceOnPlateau {
 public:
  ReduceOnPlateau(const AnyVariable& rate, ReduceOnPlateauOptions options)
      : rate_(rate), options_(std::move(options)), best_(options_.larger_is_better, options_.min_delta) {
    GraphStore& graph = *rate.handle().graph();
    const ScopeGuard outside = graph.enter(GraphStore::Scope{});
    const ScopeGuard names = enter_name_scope(graph, "reduce_on_plateau");
    reduced_ = dflow::detail::any_placeholder(graph, rate.dtype(), PartialShape{}, {.name = "reduced"});
    assign_ = rate.assign(reduced_);
  }

  void begin() {
    best_.forget();
    waited_ = cooling_ = 0;
  }
  void end_epoch(Fitting& fitting) {
    const double value = fitting.history().last(options_.value);
    if (cooling_ > 0) {
      --cooling_;
      waited_ = 0;
    }
    if (best_.take(value)) {
      waited_ = 0;
      return;
    }
    if (cooling_ > 0 || ++waited_ < options_.patience) return;
    if (reduce(fitting)) {
      cooling_ = options_.cooldown;
      waited_ = 0;
    }
  }

 private:
  /// False if the rate is the smallest already.
  bool reduce(Fitting& fitting) {
    AnyTensor value;
    fitting.session().run_erased({}, nullptr, {}, {&rate_.read_edge(), 1}, {}, {&value, 1});
    const bool is_reduced = visit_dtype<TypeList<float, double>>(value.dtype(), [&]<class T>() {
      const T rate = Tensor<T>::of(value).scalar();
      const auto reduced = static_cast<T>(std::max(static_cast<double>(rate) * options_.factor, options_.min_rate));
      if (!(reduced < rate)) return false;
      value = Tensor<T>(reduced);
      return true;
    });
    if (!is_reduced) return false;
    const Feed feed(reduced_, value);
    fitting.session().run_erased({}, nullptr, {&feed, 1}, {}, {&assign_, 1}, {});
    fitting.note_change();
    return true;
  }

  AnyVariable rate_;
  ReduceOnPlateauOptions options_;
  BestValue best_;
  AnyOutput reduced_;
  Operation assign_;
  std::int64_t waited_ = 0, cooling_ = 0;
};

class Checkpoints {
 public:
  Checkpoints(Saver& saver, std::string prefix, CheckpointOptions options)
      : saver_(saver.reference()),
        prefix_(std::move(prefix)),
        options_(std::move(options)),
        best_(options_.larger_is_better, 0) {}

  void begin() {
    static_cast<void>(saver());
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
  /// False, without an error, if the fit has ended for this reason.
  bool may_save(const Fitting& fitting) {
    if (!options_.only_finite) return true;
    const std::vector<std::string> names = variables_.in(fitting.graph()).find(fitting.session());
    if (names.empty()) return true;
    if (fitting.is_lost()) return false;
    throw_error(Status::invalid_argument(str_cat("checkpoints: not saved after step ", fitting.step(),
                                                 say_not_finite(names), " (CheckpointOptions::only_finite)")));
  }
  Saver& saver() const {
    Saver* const found = saver_.get();
    if (found == nullptr) throw_error(Status::failed_precondition("checkpoints: the saver is gone"));
    return *found;
  }
  void save(const Fitting& fitting) {
    if (!may_save(fitting)) return;
    const std::int64_t number =
        options_.global_step ? fitting.session().run(*options_.global_step).scalar() : fitting.step();
    saver().save(fitting.session(), prefix_, number);
    saved_ = fitting.version();
  }

  Reference<Saver> saver_;
  std::string prefix_;
  CheckpointOptions options_;
  BestValue best_;
  NodesOfGraph<NonFiniteVariables> variables_;
  std::int64_t saved_ = -1;  ///< version of the variables that were saved last
};

}  // namespace detail

Hook early_stopping(EarlyStoppingOptions options) {
  const auto shared = std::make_shared<detail::EarlyStopping>(std::move(options));
  return {.on_begin = [shared](Fitting&) { shared->begin(); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); },
          .on_finish = [shared](Fitting& fitting) { shared->finish(fitting); }};
}

Hook detail::reduce_on_plateau(const AnyVariable& rate, ReduceOnPlateauOptions options) {
  const auto reject = [](const std::string& message) {
    throw_error(Status::invalid_argument("reduce_on_plateau: " + message));
  };
  if (!(options.factor > 0 && options.factor < 1)) reject(str_cat("a factor of ", options.factor, ", not in (0, 1)"));
  if (options.patience < 1) reject(str_cat("a patience of ", options.patience, " epochs"));
  if (options.cooldown < 0) reject(str_cat("a cooldown of ", options.cooldown, " epochs"));
  if (!(options.min_rate >= 0)) reject(str_cat("a smallest rate of ", options.min_rate));
  if (!rate.handle().is_valid()) reject("the rate is an empty variable");
  const auto shared = std::make_shared<ReduceOnPlateau>(rate, std::move(options));
  return {.on_begin = [shared](Fitting&) { shared->begin(); },
          .on_epoch_end = [shared](Fitting& fitting) { shared->end_epoch(fitting); }};
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
