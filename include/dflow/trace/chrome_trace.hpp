#pragma once

/// Public: a step's times as a trace for chrome://tracing and Perfetto.

#include <dflow/base/config.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <string>

namespace dflow {

/// A step's statistics as text in the Trace Event Format, which chrome://tracing and Perfetto show. There is one
/// process per device, one row per thread, and one slice per run of a node, in microseconds since the step began.
/// Bytes of a name that are not UTF-8 become U+FFFD.
///
/// Thread safety: safe.
std::string chrome_trace(const StepStats& stats);

}  // namespace dflow
