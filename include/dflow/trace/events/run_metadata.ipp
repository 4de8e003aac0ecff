#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/io/summary/summary.hpp>
#include <dflow/trace/events/run_metadata.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {

/// Statistics come from other tasks, too: a difference may overflow.
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

void write_node_stats(ProtoWriter& out, const NodeStats& node, std::int64_t wall_start_us) {
  const std::int64_t duration_ns = wrapped_difference(node.end_ns, node.start_ns);
  const std::int64_t start_us = wrapped_difference(wall_start_us, -(node.start_ns / 1000));
  write_text(out, 1, node.node);
  out.int64(2, start_us);
  out.int64(4, duration_ns / 1000);
  out.int64(5, duration_ns / 1000);
  if (node.output_bytes > 0) {
    out.message(6, [&](ProtoWriter& memory) {
      write_text(memory, 1, node.device);
      memory.int64(2, node.output_bytes);
    });
  }
  write_text(out, 8, str_cat(node.node, " = ", node.op, "() ", node.output_shapes));
  out.int64(9, start_us);
  out.uint64(10, static_cast<std::uint32_t>(node.thread));
  out.int64(15, duration_ns);
  out.int64(16, duration_ns);
}

}  // namespace detail

std::string tensorflow_run_metadata(const StepStats& stats) {
  std::map<std::string_view, std::vector<const NodeStats*>> devices;
  for (const NodeStats& node : stats.nodes) devices[node.device].push_back(&node);
  std::string bytes;
  ProtoWriter(bytes).message(1, [&](ProtoWriter& step_stats) {
    for (auto& [device, nodes] : devices) {
      std::stable_sort(nodes.begin(), nodes.end(),
                       [](const NodeStats* a, const NodeStats* b) { return a->start_ns < b->start_ns; });
      step_stats.message(1, [&, &device = device, &nodes = nodes](ProtoWriter& out) {
        detail::write_text(out, 1, device);
        for (const NodeStats* node : nodes) {
          out.message(2, [&](ProtoWriter& fields) { detail::write_node_stats(fields, *node, stats.wall_start_us); });
        }
      });
    }
  });
  return bytes;
}

}  // namespace dflow
