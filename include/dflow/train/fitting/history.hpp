#pragma once

#include <dflow/base/duration.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// Numbers by name: "loss", the metrics, and both again with "validation_" before the name.
using Values = std::map<std::string, double, std::less<>>;

/// The results of an epoch.
struct EpochResult {
  std::int64_t epoch = 0;  ///< counted from 0
  std::int64_t steps = 0;  ///< batches that were trained on
  Duration elapsed{};      ///< includes validation
  /// Means over the elements of all batches.
  Values values{};

  double loss() const { return value("loss"); }
  /// Errors: NotFound, which names the numbers that there are.
  double value(std::string_view name) const;
};

/// The results of a call of `fit`.
struct History {
  std::vector<EpochResult> epochs;  ///< an epoch that ended early is among them if a step of it ran
  std::int64_t steps = 0;
  std::string stopped_by;  ///< the reason why `fit` ended before the last epoch, or ""

  /// A value of the last epoch. Errors: as `EpochResult`; NotFound without an epoch.
  double last(std::string_view name) const;
};

}  // namespace dflow::train
