#pragma once

#include <dflow/core/rendezvous.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/passes/check_receives.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace dflow {

namespace detail {

struct ReceivePair {
  StepNodeId send, receive;
};

[[noreturn]] void reject_receive(const Node& node, std::string message) {
  throw_error(
      Status::invalid_argument(std::move(message)).with_node(node.op->name, node.name).with_location(node.where));
}

/// Each receive with its sender.
std::vector<ReceivePair> pair_receives(const StepGraph& graph) {
  const auto key_of = [](const auto& attrs) {
    return RendezvousKey(attrs.send_device, attrs.send_device_incarnation, attrs.recv_device, attrs.tensor_name).text();
  };
  std::unordered_map<std::string, StepNodeId> sent;
  std::vector<ReceivePair> pairs;
  for (const StepNodeId id : graph.nodes.indices()) {
    const StepNode& node = graph.node(id);
    if (node.op == &op_def<Send>) sent.emplace(key_of(node->attrs_as<Send>()), id);
    if (node.op == &op_def<Recv> && !node.is_fed_only) pairs.push_back({StepNodeId(), id});
  }
  for (ReceivePair& pair : pairs) {
    const Node& node = *graph.node(pair.receive);
    const Recv::Attrs& attrs = node.attrs_as<Recv>();
    const auto found = sent.find(key_of(attrs));
    if (found == sent.end()) {
      reject_receive(node, str_cat("nothing in this step sends '", attrs.tensor_name, "' to '", node.name, "'"));
    }
    pair.send = found->second;
  }
  return pairs;
}

/// The waits in a step: for inputs that are not fed, for control inputs, and of receives for their senders.
class Waits {
 public:
  Waits(const StepGraph& graph, const std::vector<ReceivePair>& pairs)
      : readers_(graph.nodes.size()), pending_(graph.nodes.size()) {
    for (const ReceivePair& pair : pairs) add(pair.send, pair.receive);
    const EdgePositions<StepNodeId> fed(graph.feeds, graph.nodes.size());
    for (const StepNodeId id : graph.nodes.indices()) {
      const StepNode& node = graph.node(id);
      if (node.is_fed_only) continue;
      for (const StepEndpoint input : graph.inputs_of(node)) {
        if (!fed.contains(input)) add(input.node, id);
      }
      for (const StepNodeId control : graph.controls_of(node)) add(control, id);
    }
  }

  /// Lets all nodes pass that can; the others wait for themselves.
  void run() {
    std::vector<StepNodeId> ready;
    for (const StepNodeId id : pending_.indices()) {
      if (pending_[id] == 0) ready.push_back(id);
    }
    while (!ready.empty()) {
      const StepNodeId node = ready.back();
      ready.pop_back();
      for (const StepNodeId reader : readers_[node]) {
        if (--pending_[reader] == 0) ready.push_back(reader);
      }
    }
  }
  bool has_run(StepNodeId id) const { return pending_[id] == 0; }

 private:
  void add(StepNodeId from, StepNodeId to) {
    readers_[from].push_back(to);
    ++pending_[to];
  }

  IndexedVector<StepNodeId, std::vector<StepNodeId>> readers_;
  IndexedVector<StepNodeId, std::int32_t> pending_;
};

}  // namespace detail

void check_receives(const StepGraph& graph) {
  const std::vector<detail::ReceivePair> pairs = detail::pair_receives(graph);
  if (pairs.empty()) return;
  detail::Waits waits(graph, pairs);
  waits.run();
  for (const detail::ReceivePair& pair : pairs) {
    if (waits.has_run(pair.receive)) continue;
    const Node& node = *graph.node(pair.receive);
    detail::reject_receive(
        node, str_cat("what sends '", node.attrs_as<Recv>().tensor_name, "' waits for '", node.name, "' itself"));
  }
}

}  // namespace dflow
