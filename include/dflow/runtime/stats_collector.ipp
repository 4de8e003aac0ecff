#pragma once

#include <dflow/runtime/stats_collector.hpp>

#include <unordered_map>

namespace dflow {

StatsCollector::StatsCollector(std::uint64_t step_id, const Clock& clock) : clock_(clock), start_(clock.now()) {
  stats_.step_id = step_id;
  stats_.wall_start_us =
      std::chrono::duration_cast<std::chrono::microseconds>(clock.wall_now().time_since_epoch()).count();
}

std::int64_t StatsCollector::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.now() - start_).count();
}

void StatsCollector::record(KernelContext& context, std::int64_t start_ns, std::int64_t end_ns) {
  NodeStats node;
  node.node = context.node().name;
  node.op = context.node().op->name;
  node.device = context.device().name;
  node.start_ns = start_ns;
  node.end_ns = end_ns;
  for (int i = 0; i < context.num_outputs(); ++i) {
    const AnyTensor& output = context.output(i);
    if (!output.is_initialized()) continue;
    node.output_bytes += static_cast<std::int64_t>(output.bytes());
    node.output_shapes += (node.output_shapes.empty() ? "" : " ") + output.shape().to_string();
  }
  const std::lock_guard lock(mutex_);
  node.thread =
      threads_.try_emplace(std::pair(0, std::this_thread::get_id()), static_cast<int>(threads_.size())).first->second;
  stats_.nodes.push_back(std::move(node));
}

void StatsCollector::add(const StepStats& other, std::int64_t later_ns) {
  const auto moved = [&](std::int64_t time) {  // another task may say any number
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + static_cast<std::uint64_t>(later_ns));
  };
  const std::lock_guard lock(mutex_);
  std::unordered_map<int, int> threads;  // threads of two tasks are never one
  for (const NodeStats& node : other.nodes) {
    NodeStats& added = stats_.nodes.emplace_back(node);
    added.start_ns = moved(node.start_ns);
    added.end_ns = moved(node.end_ns);
    const auto [found, is_new] = threads.try_emplace(node.thread);
    if (is_new)
      found->second =
          threads_.try_emplace(std::pair(++num_added_, std::thread::id()), static_cast<int>(threads_.size()))
              .first->second;
    added.thread = found->second;
  }
}

StepStats StatsCollector::finish() {
  const std::lock_guard lock(mutex_);
  stats_.total_ns = now_ns();
  return std::move(stats_);
}

}  // namespace dflow
