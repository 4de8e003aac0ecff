#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

DFLOW_INLINE std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      json += escaped;
    } else {
      json += c;
    }
  }
  return json += '"';
}

/// Nanoseconds as microseconds with three decimals.
DFLOW_INLINE std::string json_micros(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1000.0);
  return text;
}

}  // namespace detail

DFLOW_INLINE std::string chrome_trace(const StepStats& stats) {
  std::vector<std::string_view> devices;
  const auto process_of = [&](std::string_view device) {
    const auto found = std::find(devices.begin(), devices.end(), device);
    if (found != devices.end()) return found - devices.begin();
    devices.push_back(device);
    return static_cast<std::ptrdiff_t>(devices.size()) - 1;
  };
  std::string events;
  for (const NodeStats& node : stats.nodes) {
    events += str_cat(
        events.empty() ? "" : ",\n", "{\"ph\":\"X\",\"cat\":\"op\",\"name\":", detail::json_string(node.op),
        ",\"pid\":", process_of(node.device), ",\"tid\":", node.thread, ",\"ts\":", detail::json_micros(node.start_ns),
        ",\"dur\":", detail::json_micros(node.end_ns - node.start_ns),
        ",\"args\":{\"node\":", detail::json_string(node.node),
        ",\"outputs\":", detail::json_string(node.output_shapes), ",\"output_bytes\":", node.output_bytes, "}}");
  }
  std::string names;
  for (std::size_t pid = 0; pid < devices.size(); ++pid) {
    names += str_cat("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", pid,
                     ",\"args\":{\"name\":", detail::json_string(devices[pid]), "}}", events.empty() ? "\n" : ",\n");
  }
  return str_cat("{\"traceEvents\":[\n", names, events,
                 "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"step_id\":", stats.step_id,
                 ",\"wall_start_us\":", stats.wall_start_us, ",\"total_us\":", detail::json_micros(stats.total_ns),
                 "}}\n");
}

}  // namespace dflow
