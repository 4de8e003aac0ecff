#pragma once

#include <cstddef>

namespace dflow {

/// How many compiled steps a session keeps. The last two steps that were run once, and the last four that were run
/// again, stay regardless of their size, as far as `max_steps` allows.
struct StepCacheOptions {
  /// Nodes of steps that were run once, which are the first to go.
  std::size_t max_nodes_run_once = std::size_t{1} << 14;
  /// Nodes of steps that were run again.
  std::size_t max_nodes = std::size_t{1} << 20;
  /// Steps of both kinds together; 0 counts as 1. Up to two of them are kept for steps that were run once.
  std::size_t max_steps = 1024;
};

}  // namespace dflow
