#pragma once

#include <dflow/base/config.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <string>

namespace dflow {

/// A step's statistics as the bytes of TensorFlow's RunMetadata (step_stats.proto), by which TensorBoard's graph page
/// colours nodes by their time and memory: of each device the runs of its nodes, in the order of their starts.
///
/// Thread safety: safe.
std::string tensorflow_run_metadata(const StepStats& stats);

}  // namespace dflow
