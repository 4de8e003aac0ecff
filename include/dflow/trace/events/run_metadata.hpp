#pragma once

#include <dflow/base/config.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <string>

namespace dflow {

/// A step's statistics as the bytes of TensorFlow's RunMetadata (step_stats.proto). They list the runs of each
/// device's nodes, in the order of their starts. TensorBoard's graph page uses them to colour nodes by time and
/// memory.
///
/// Thread safety: safe.
std::string tensorflow_run_metadata(const StepStats& stats);

}  // namespace dflow
