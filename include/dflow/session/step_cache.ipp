#pragma once

#include <dflow/session/step_cache.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow {

std::shared_ptr<CompiledStep> StepCache::find(const std::string& signature) {
  Order dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = found_.find(signature);
  if (found == found_.end()) return nullptr;
  const Order::iterator entry = found->second;
  Segment& from = segment_of(*entry);
  from.num_nodes -= entry->num_nodes;
  entry->was_run_again = true;
  run_again_.order.splice(run_again_.order.begin(), from.order, entry);
  run_again_.num_nodes += entry->num_nodes;
  trim(run_again_, options_.max_nodes, 4, dropped);
  return entry->step;
}

std::shared_ptr<CompiledStep> StepCache::insert(std::string signature, std::shared_ptr<CompiledStep> step) {
  Order dropped;
  const std::lock_guard lock(mutex_);
  if (const auto found = found_.find(signature); found != found_.end()) return found->second->step;
  const std::size_t num_nodes = step->num_nodes() + 1;
  Order entry;
  entry.push_front({signature, step, num_nodes, false});
  found_.emplace(std::move(signature), entry.begin());
  run_once_.order.splice(run_once_.order.begin(), entry);
  run_once_.num_nodes += num_nodes;
  trim(run_once_, options_.max_nodes_run_once, 2, dropped);
  trim_to_max_steps(dropped);
  return step;
}

void StepCache::drop_last(Segment& segment, Order& dropped) {
  const Order::iterator last = std::prev(segment.order.end());
  segment.num_nodes -= last->num_nodes;
  found_.erase(last->signature);
  dropped.splice(dropped.begin(), segment.order, last);
}

/// The last `keep` stay, regardless of their size.
void StepCache::trim(Segment& segment, std::size_t max_nodes, std::size_t keep, Order& dropped) {
  while (segment.order.size() > keep && segment.num_nodes > max_nodes) drop_last(segment, dropped);
}

/// Two steps that take turns must stay until both have been run again.
void StepCache::trim_to_max_steps(Order& dropped) {
  const std::size_t max_steps = std::max<std::size_t>(options_.max_steps, 1);
  while (found_.size() > max_steps) {
    const bool has_room = run_once_.order.size() <= std::min<std::size_t>(max_steps, 2) && !run_again_.order.empty();
    drop_last(has_room ? run_again_ : run_once_, dropped);
  }
}

std::size_t StepCache::size() const {
  const std::lock_guard lock(mutex_);
  return found_.size();
}

void StepCache::release_idle_memory() {
  std::vector<std::shared_ptr<CompiledStep>> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const Segment* segment : {&run_once_, &run_again_}) {
      for (const Entry& entry : segment->order) steps.push_back(entry.step);
    }
  }
  for (const std::shared_ptr<CompiledStep>& step : steps) step->release_idle_memory();
}

}  // namespace dflow
