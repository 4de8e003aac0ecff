#pragma once

#include <dflow/base/status.hpp>
#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>

namespace dflow::data {

struct IgnoreErrorsOptions {
  /// The number of errors that are ignored in an epoch; the next one is thrown. By default there is no limit.
  std::uint64_t limit = endless;
  /// Called for each error that is ignored, with the number of errors in the epoch so far, in the thread that reads the
  /// elements. The error names step and element. The function may throw: the iterator then fails with that exception.
  std::function<void(const Status& error, std::uint64_t count)> on_error = {};
};

/// Leaves out the elements that cannot be made: those for which a source or a function of a step before has thrown. A
/// batch or window of an element that cannot be made is left out as a whole. Other errors are thrown: of the iterator,
/// and for a lack of threads.
SharedRecipe ignore_errors_recipe(SharedRecipe input, IgnoreErrorsOptions options);

}  // namespace dflow::data
