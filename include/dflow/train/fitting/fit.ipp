#pragma once

#include <dflow/base/plain_nan.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/train/finite.hpp>
#include <dflow/train/fitting/fit.hpp>
#include <dflow/train/optimizer.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::train {

namespace detail {

/// Means of values over batches, each weighed by its rows. A batch without rows has values that are no numbers, and no
/// weight. A streaming metric has its last value.
class Means {
 public:
  explicit Means(const std::set<std::string, std::less<>>& streaming) : streaming_(streaming) {}

  void add(const Values& values, double rows) {
    rows_ += rows;
    for (const auto& [name, value] : values) {
      double& sum = sums_[name];
      sum = streaming_.contains(name) ? value : sum + (rows == 0 ? 0 : rows * value);
    }
  }
  Values values() const {
    Values means = sums_;
    for (auto& [name, value] : means) value = plain_nan(streaming_.contains(name) ? value : value / rows_);
    return means;
  }

 private:
  const std::set<std::string, std::less<>>& streaming_;
  Values sums_;
  double rows_ = 0;
};

/// A batch on its way: to the feeds of a step, and the values back.
class BatchStep {
 public:
  BatchStep(Session& session, const AnyTrainStep& step, bool trains) : session_(session) {
    const TrainStepOptions& options = step.options;
    const bool has_own_loss = !trains && options.validation_loss.is_valid();
    const bool has_own_metrics = !trains && !options.validation_metrics.empty();
    const std::vector<Metric>& metrics = has_own_metrics ? options.validation_metrics : options.metrics;
    names_.emplace_back("loss");
    edges_.push_back(has_own_loss ? options.validation_loss : step.loss);
    for (const Metric& metric : metrics) {
      names_.push_back(metric.name);
      edges_.push_back(metric.value);
      if (!metric.reset.is_valid()) continue;
      streaming_.insert(metric.name);
      resets_.push_back(metric.reset);
    }
    if (trains) targets_.push_back(step.train);
    if (trains && options.run_update_ops) {
      const std::vector<Operation> updates = update_operations(step.loss);
      targets_.insert(targets_.end(), updates.begin(), updates.end());
    }
    for (const AnyOutput& edge : step.feeds) feeds_.emplace_back(edge, AnyTensor());
    if (options.training.is_valid()) feeds_.emplace_back(options.training, trains);
    num_tensors_ = step.feeds.size();
    tensors_.resize(num_tensors_);
    results_.resize(edges_.size());
  }

  /// The names of the streaming metrics.
  const std::set<std::string, std::less<>>& streaming() const { return streaming_; }
  void reset_metrics() {
    if (!resets_.empty()) session_.run_erased({}, nullptr, {}, {}, resets_, {});
  }

  /// Adds an edge that the next `run` fetches too; returns its number among these edges.
  std::size_t also(const AnyOutput& edge) {
    edges_.push_back(edge);
    results_.resize(edges_.size());
    return edges_.size() - names_.size() - 1;
  }
  AnyTensor& fetched(std::size_t number) { return results_[names_.size() + number]; }
  void forget_fetched() {
    edges_.resize(names_.size());
    results_.resize(names_.size());
  }

  /// Returns the number of rows of the batch, whose tensors stay until `release`.
  double run(data::Item& batch, Values& values, const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    batch.split(tensors_.data());
    for (std::size_t i = 0; i < num_tensors_; ++i) feeds_[i].tensor = std::move(tensors_[i]);
    const bool has_rows = num_tensors_ != 0 && feeds_.front().tensor.rank() != 0;
    const auto rows = static_cast<double>(has_rows ? feeds_.front().tensor.dim(0) : 1);
    session_.run_erased(options, metadata, feeds_, edges_, targets_, results_);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const bool is_float = results_[i].dtype() == DType::float32;
      values[names_[i]] = plain_nan(is_float ? static_cast<double>(results_[i].as<float>().scalar())
                                             : results_[i].as<double>().scalar());
    }
    return rows;
  }
  void release() {
    for (std::size_t i = 0; i < num_tensors_; ++i) feeds_[i].tensor.reset();
  }

  /// The tensors of the batch with elements that are infinite or NaN, as text.
  std::string say_non_finite_inputs() const {
    std::string text;
    for (std::size_t i = 0; i < num_tensors_; ++i) {
      text += say_non_finite(str_cat("'", feeds_[i].output.name(), "'"), feeds_[i].tensor);
    }
    return text.empty() ? "; all inputs are finite" : text;
  }

 private:
  Session& session_;
  std::vector<std::string> names_;
  std::vector<AnyOutput> edges_;
  std::vector<Operation> targets_, resets_;
  std::set<std::string, std::less<>> streaming_;
  std::vector<Feed> feeds_;
  std::size_t num_tensors_ = 0;
  std::vector<AnyTensor> tensors_, results_;
};

/// Gets the next batch; an error while it is made is thrown with its place.
bool next_batch(data::AnyIterator& batches, data::Item& batch, std::string_view of) {
  const std::string place = str_cat(of, "epoch ", batches.epoch(), ", batch ", batches.position(), ": ");
  try {
    return batches.next(batch);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(place));
  } catch (...) {
    std::throw_with_nested(Error(status_of_current_exception().with_prefix(place)));
  }
}

/// The count of an iterator as a signed number; a count that does not fit becomes the largest number.
inline std::int64_t as_count(std::uint64_t count) noexcept {
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(count, static_cast<std::uint64_t>(max)));
}

Values evaluate(Session& session, const AnyTrainStep& step, const ValidationData& data) {
  if (data.num_tensors() != step.feeds.size()) {
    throw_error(Status::invalid_argument(str_cat("the batches of the validation data have ", data.num_tensors(),
                                                 " tensors, and the step has ", step.feeds.size(), " feeds")));
  }
  BatchStep each(session, step, false);
  data::AnyIterator batches(data.recipe(), 0);
  data::Item batch;
  Means means(each.streaming());
  Values values;
  each.reset_metrics();
  while (next_batch(batches, batch, "validation, ")) {
    const double rows = each.run(batch, values);
    each.release();
    means.add(values, rows);
  }
  if (batches.position() == 0) throw_error(Status::invalid_argument("the validation data are empty"));
  return means.values();
}

}  // namespace detail

void Fitting::show(std::string_view name, double value) { shown_.insert_or_assign(std::string(name), value); }

double Fitting::loss() const {
  const auto loss = values_.find("loss");
  if (loss == values_.end()) throw_error(Status::not_found("no step has run yet: there is no loss"));
  return loss->second;
}

void Fitting::stop(std::string reason) {
  if (!std::exchange(is_stopped_, true)) history_.stopped_by = std::move(reason);
}

/// One call of `fit`.
class FitLoop {
 public:
  FitLoop(Session& session, const AnyTrainStep& step, data::AnyIterator& batches, const FitOptions& options)
      : step_(step),
        batches_(batches),
        options_(options),
        each_(session, step, true),
        fitting_(session, *step.loss.graph()) {
    if (options.progress) progress_.emplace(total_steps(), *options.progress);
  }

  History run() {
    fitting_.epoch_ = detail::as_count(batches_.epoch());
    try {
      for (const Hook& hook : options_.hooks) {
        if (hook.on_begin) hook.on_begin(fitting_);
        ++num_begun_;
      }
      while (!is_over() && fitting_.epoch_ < options_.epochs) epoch();
      if (!is_interrupted_) call(&Hook::on_finish);
      for (const Hook& hook : options_.hooks) {
        ++num_ended_;
        if (hook.on_end) hook.on_end(fitting_);
      }
    } catch (...) {
      tell_of_error(status_of_current_exception());
      throw;
    }
    return std::move(fitting_.history_);
  }

 private:
  using Time = std::chrono::steady_clock;

  void epoch() {
    const Time::time_point begin = Time::now();
    fitting_.batch_ = detail::as_count(batches_.position());
    fitting_.values_.clear();
    call(&Hook::on_epoch_begin);
    EpochResult result{.epoch = fitting_.epoch_};
    detail::Means means(each_.streaming());
    data::Item batch;
    bool has_ended = false;
    each_.reset_metrics();
    while (!is_over() && !has_ended) {
      has_ended = !detail::next_batch(batches_, batch, "");
      if (!has_ended) train(batch, means, result);
    }
    if (!has_ended && result.steps == 0) return;
    if (has_ended) end_of_data();
    result.values = result.steps == 0 ? Values{{"loss", std::numeric_limits<double>::quiet_NaN()}} : means.values();
    if (has_ended && !options_.validation.is_empty()) {
      for (const auto& [name, value] : detail::evaluate(fitting_.session(), step_, options_.validation)) {
        result.values["validation_" + name] = value;
      }
    }
    result.elapsed = std::chrono::duration_cast<Duration>(Time::now() - begin);
    fitting_.values_ = result.values;
    fitting_.history_.epochs.push_back(std::move(result));
    if (!has_ended) return;
    batches_.next_epoch();
    call(&Hook::on_epoch_end);
    fitting_.epoch_ = detail::as_count(batches_.epoch());
  }

  void train(data::Item& batch, detail::Means& means, EpochResult& result) {
    observe();
    const double rows = each_.run(batch, fitting_.values_, {.trace = traces_}, traces_ ? &metadata_ : nullptr);
    fitting_.is_lost_ = options_.on_nan != OnNan::go_on && rows != 0 && !std::isfinite(fitting_.loss());
    const std::string inputs = fitting_.is_lost_ ? each_.say_non_finite_inputs() : std::string();
    each_.release();
    means.add(fitting_.values_, rows);
    ++result.steps;
    ++fitting_.history_.steps;
    fitting_.batch_ = detail::as_count(batches_.position());
    if (fitting_.is_lost_) {
      end_lost(inputs);
    } else if (fitting_.batch_ % step_.options.update_every == 0) {
      update();
    }
    call_observers();
    if (progress_) {
      for (const auto& [name, value] : fitting_.shown_) progress_->show_value(name, value);
      progress_->step(fitting_.loss());
    }
    call(&Hook::on_step);
  }

  /// Ends the fit after a step whose loss is no finite number.
  void end_lost(std::string_view inputs) {
    std::string text = str_cat("fit: the loss is ", fitting_.loss(), " in step ", fitting_.step(), " (epoch ",
                               fitting_.epoch_, ", batch ", fitting_.batch_ - 1, ")", inputs,
                               detail::say_non_finite_variables(fitting_.session(), fitting_.graph()));
    if (options_.on_nan == OnNan::fail) throw_error(Status::invalid_argument(std::move(text)));
    fitting_.stop(std::move(text));
  }

  /// Asks the hooks for the values that they observe in the next step.
  void observe() {
    observers_.clear();
    traces_ = false;
    for (const Hook& hook : options_.hooks) {
      if (!hook.observe || !hook.on_observed) continue;
      const Observation wanted = hook.observe(fitting_);
      if (!wanted.edge.is_valid() && !wanted.trace) continue;
      Observer& observer = observers_.emplace_back(Observer{&hook, std::nullopt, wanted.trace});
      if (wanted.edge.is_valid()) observer.fetched = each_.also(wanted.edge);
      traces_ |= wanted.trace;
    }
  }
  void call_observers() {
    for (const Observer& observer : observers_) {
      AnyTensor value = observer.fetched ? std::move(each_.fetched(*observer.fetched)) : AnyTensor();
      observer.hook->on_observed(fitting_, {std::move(value), observer.traces ? &metadata_ : nullptr});
    }
    if (!observers_.empty()) each_.forget_fetched();
  }

  /// Called when the batches of an epoch have ended.
  void end_of_data() {
    if (batches_.position() == 0)
      throw_error(Status::invalid_argument("fit: the data are empty: an epoch has no batch"));
    if (fitting_.batch_ % step_.options.update_every != 0) update();
  }
  void update() {
    if (step_.options.update.is_valid()) fitting_.session().run(step_.options.update);
  }

  bool is_over() {
    if (options_.stop.stop_requested() && !fitting_.is_stopped()) {
      is_interrupted_ = true;
      fitting_.stop("stop was requested");
    }
    if (options_.max_steps && fitting_.step() >= *options_.max_steps) fitting_.stop("max_steps");
    return fitting_.is_stopped();
  }
  void call(std::function<void(Fitting&)> Hook::*which) {
    for (const Hook& hook : options_.hooks) {
      if (hook.*which) (hook.*which)(fitting_);
    }
  }
  /// Tells the hooks that have begun and have not been told of the end.
  void tell_of_error(const Status& status) noexcept {
    for (std::size_t i = num_ended_; i < num_begun_; ++i) {
      const Hook& hook = options_.hooks[i];
      try {
        if (hook.on_error) hook.on_error(fitting_, status);
      } catch (...) {  // the first error is the important one
      }
    }
  }
  /// 0 if the number is not known.
  std::int64_t total_steps() const {
    const std::optional<std::int64_t> size = batches_.size();
    const std::int64_t epochs = std::max<std::int64_t>(0, options_.epochs - detail::as_count(batches_.epoch()));
    std::int64_t total = 0;
    if (!size || __builtin_mul_overflow(*size, epochs, &total)) total = 0;
    total = std::max<std::int64_t>(0, total - detail::as_count(batches_.position()));
    if (options_.max_steps) total = total == 0 ? *options_.max_steps : std::min(total, *options_.max_steps);
    return total;
  }

  bool is_interrupted_ = false;
  const AnyTrainStep& step_;
  data::AnyIterator& batches_;
  const FitOptions& options_;
  detail::BatchStep each_;
  Fitting fitting_;
  std::optional<Progress> progress_;
  std::size_t num_begun_ = 0, num_ended_ = 0;  ///< hooks

  /// A hook that wants to see something of the step under way.
  struct Observer {
    const Hook* hook;
    std::optional<std::size_t> fetched;
    bool traces;
  };
  std::vector<Observer> observers_;
  bool traces_ = false;
  RunMetadata metadata_;
};

void detail::require_tensors(const AnyTrainStep& step, std::size_t num_tensors) {
  step.check({});
  if (num_tensors == step.feeds.size()) return;
  throw_error(Status::invalid_argument(
      str_cat("the batches have ", num_tensors, " tensors, and the step has ", step.feeds.size(), " feeds")));
}

History detail::fit(Session& session, const AnyTrainStep& step, data::AnyIterator& batches, const FitOptions& options) {
  if (options.max_steps && *options.max_steps < 0) {
    throw_error(Status::invalid_argument(str_cat("fit: max_steps ", *options.max_steps)));
  }
  if (options.epochs < 1) throw_error(Status::invalid_argument(str_cat("fit: ", options.epochs, " epochs")));
  if (step.feeds.empty()) throw_error(Status::failed_precondition("fit: the step has no feeds, or was moved from"));
  if (!options.validation.is_empty() && options.validation.num_tensors() != step.feeds.size()) {
    throw_error(Status::invalid_argument(str_cat("fit: the batches of the validation data have ",
                                                 options.validation.num_tensors(), " tensors, and the step has ",
                                                 step.feeds.size(), " feeds")));
  }
  return FitLoop(session, step, batches, options).run();
}

}  // namespace dflow::train
