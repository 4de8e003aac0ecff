#pragma once

#include <dflow/io/json/writer.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace dflow {

std::string chrome_trace(const StepStats& stats) {
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
  for (const NodeStats& node : stats.nodes) process_of(node.device);

  std::string text;
  json::Writer out(text, json::BadUtf8::replace);
  const auto member = [&](std::string_view key, const auto& value) {
    out.key(key);
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      out.string(value);
    } else {
      out.number(value);
    }
  };
  out.begin_object();
  out.key("traceEvents");
  out.begin_array();
  for (std::size_t pid = 0; pid < devices.size(); ++pid) {
    out.begin_object();
    member("ph", "M");
    member("name", "process_name");
    member("pid", pid);
    out.key("args");
    out.begin_object();
    member("name", devices[pid]);
    out.end_object();
    out.end_object();
  }
  for (const NodeStats& node : stats.nodes) {
    out.begin_object();
    member("ph", "X");
    member("cat", "op");
    member("name", node.op);
    member("pid", process_of(node.device));
    member("tid", node.thread);
    member("ts", micros(node.start_ns));
    member("dur", micros(duration_ns(node)));
    out.key("args");
    out.begin_object();
    member("node", node.node);
    member("outputs", node.output_shapes);
    member("output_bytes", node.output_bytes);
    out.end_object();
    out.end_object();
  }
  out.end_array();
  member("displayTimeUnit", "ms");
  out.key("otherData");
  out.begin_object();
  member("step_id", stats.step_id);
  member("wall_start_us", stats.wall_start_us);
  member("total_us", micros(stats.total_ns));
  out.end_object();
  out.end_object();
  return text + "\n";
}

}  // namespace dflow
