#pragma once

#include <dflow/base/duration.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// Numbers by name: "loss", those of the metrics, and the same with "validation_" before them.
using Values = std::map<std::string, double, std::less<>>;

/// What came of an epoch.
struct EpochResult {
  std::int64_t epoch = 0;  ///< counted from 0
  std::int64_t steps = 0;  ///< batches that were trained on
  Duration elapsed{};      ///< validation included
  /// Means over the elements of all batches.
  Values values{};

  double loss() const { return value("loss"); }
  /// Errors: NotFound, naming those that there are.
  double value(std::string_view name) const;
};

/// What came of a call of `fit`.
struct History {
  std::vector<EpochResult> epochs;  ///< also one that was ended early, if any step of it was run
  std::int64_t steps = 0;
  std::string stopped_by;  ///< why it ended before the last epoch did: "" if it did not

  /// A value of the last epoch. Errors: NotFound also without an epoch.
  double last(std::string_view name) const;
};

}  // namespace dflow::train
