#pragma once

#include <dflow/base/config.hpp>
#include <dflow/io/summary/summary.hpp>

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace dflow {

/// By name.
using Hyperparameters = std::map<std::string, std::variant<bool, double, std::string>, std::less<>>;

/// One run as TensorBoard's page of hyperparameters lists it; the metrics are tags of scalars in the same folder.
struct HyperparameterRun {
  Hyperparameters values;
  std::vector<std::string> metrics;
  std::string group;           ///< runs of one group are shown together; empty: none
  double start_time_secs = 0;  ///< since 1970
};

/// The values that begin a run: the compared hyperparameters and metrics, and the values of this run.
Summary hyperparameters_summary(const HyperparameterRun& run);

/// The value that ends a run.
Summary hyperparameters_end_summary(bool has_succeeded, double end_time_secs);

}  // namespace dflow
