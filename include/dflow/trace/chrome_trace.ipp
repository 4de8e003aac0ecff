#pragma once

#include <dflow/base/status.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#if defined(DFLOW_HAS_JSON)
#include <nlohmann/json.hpp>
#endif

namespace dflow {

#if defined(DFLOW_HAS_JSON)

DFLOW_INLINE std::string chrome_trace(const StepStats& stats) {
  using Json = nlohmann::ordered_json;
  const auto micros = [](std::int64_t ns) { return static_cast<double>(ns) / 1000.0; };
  std::vector<std::string_view> devices;
  const auto process_of = [&](std::string_view device) {
    const auto found = std::find(devices.begin(), devices.end(), device);
    if (found != devices.end()) return found - devices.begin();
    devices.push_back(device);
    return static_cast<std::ptrdiff_t>(devices.size()) - 1;
  };
  std::vector<Json> slices;
  for (const NodeStats& node : stats.nodes) {
    const Json args{{"node", node.node}, {"outputs", node.output_shapes}, {"output_bytes", node.output_bytes}};
    slices.push_back({{"ph", "X"},
                      {"cat", "op"},
                      {"name", node.op},
                      {"pid", process_of(node.device)},
                      {"tid", node.thread},
                      {"ts", micros(node.start_ns)},
                      {"dur", micros(node.end_ns - node.start_ns)},
                      {"args", args}});
  }
  Json events = Json::array();
  for (std::size_t pid = 0; pid < devices.size(); ++pid) {
    events.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", Json::object({{"name", devices[pid]}})}});
  }
  for (Json& slice : slices) events.push_back(std::move(slice));
  const Json step{
      {"step_id", stats.step_id}, {"wall_start_us", stats.wall_start_us}, {"total_us", micros(stats.total_ns)}};
  const Json trace{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"otherData", step}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

#else

DFLOW_INLINE std::string chrome_trace(const StepStats&) {
  throw_error(unimplemented("this library was built without nlohmann-json and cannot write a Chrome trace"));
}

#endif

}  // namespace dflow
