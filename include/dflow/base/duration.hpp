#pragma once

// <mutex> has std::chrono::duration and time_point in its interface and costs 0.05 s to parse; <chrono>, with calendars
// and time zones, costs 0.45 s (g++ 12).
#include <mutex>

namespace dflow {

/// Spans of time in the library's interfaces; any std::chrono duration of whole nanoseconds converts.
using Duration = std::chrono::nanoseconds;

}  // namespace dflow
