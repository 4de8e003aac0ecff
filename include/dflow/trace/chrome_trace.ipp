#pragma once

#include <dflow/base/status.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(DFLOW_HAS_JSON)
#include <nlohmann/json.hpp>
#endif

namespace dflow {

#if defined(DFLOW_HAS_JSON)

std::string chrome_trace(const StepStats& stats) {
  using Json = nlohmann::ordered_json;
  const auto micros = [](std::int64_t ns) { return static_cast<double>(ns) / 1000.0; };
  // Statistics come from other tasks, too: nothing is believed of how many devices there are, and when a node ran.
  std::vector<std::string_view> devices;
  std::unordered_map<std::string_view, std::size_t> numbers;
  const auto process_of = [&](std::string_view device) {
    const auto [found, is_new] = numbers.try_emplace(device, devices.size());
    if (is_new) devices.push_back(device);
    return found->second;
  };
  const auto duration_ns = [](const NodeStats& node) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(node.end_ns) -
                                     static_cast<std::uint64_t>(node.start_ns));
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
                      {"dur", micros(duration_ns(node))},
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

std::string chrome_trace(const StepStats&) {
  throw_error(unimplemented("this library was built without nlohmann-json and cannot write a Chrome trace"));
}

#endif

}  // namespace dflow
