#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/train/fitting/train_step.hpp>
#include <dflow/train/metrics.hpp>

#include <set>

namespace dflow::train {

void Metric::set(const metrics::StreamingMetric& metric) {
  value = metric.updated;
  reset = metric.reset;
}

void AnyTrainStep::check(std::source_location where) const {
  const auto reject = [&](const std::string& message) {
    throw_error(Status::invalid_argument("TrainStep: " + message).with_location(where));
  };
  const auto require_mean = [&](std::string_view name, const AnyOutput& edge) {
    if (!edge.is_valid()) reject(str_cat("'", name, "' is an empty Output"));
    const bool is_scalar = !edge.shape().has_rank() || edge.shape().rank() == 0;
    if (is_scalar && (edge.dtype() == DType::float32 || edge.dtype() == DType::float64)) return;
    reject(str_cat("'", name, "' is ", dtype_name(edge.dtype()), edge.shape().to_string(),
                   ", and is to be a float or double scalar: the mean over a batch"));
  };
  for (const AnyOutput& feed : feeds) {
    if (!feed.is_valid()) reject("a feed is an empty Output");
  }
  require_mean("loss", loss);
  if (!train.is_valid()) reject("the operation that trains is empty");
  if (options.validation_loss.is_valid()) require_mean("validation loss", options.validation_loss);
  for (const std::vector<Metric>* const metrics : {&options.metrics, &options.validation_metrics}) {
    std::set<std::string_view> names{"loss"};
    for (const Metric& metric : *metrics) {
      require_mean(metric.name, metric.value);
      if (!names.insert(metric.name).second) reject(str_cat("'", metric.name, "' is the name of two values"));
    }
  }
  if (options.update_every < 1) reject(str_cat("an update after ", options.update_every, " batches"));
}

}  // namespace dflow::train
