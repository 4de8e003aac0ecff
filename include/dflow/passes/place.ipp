#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/passes/place.hpp>

#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Placement by groups: nodes that must be together form one group (union-find), each group gets one device.
class Placer {
 public:
  Placer(StepGraph& graph, std::span<const std::shared_ptr<Device>> devices, const OpTable& ops, bool soft)
      : graph_(graph), devices_(devices), ops_(ops), soft_(soft), parent_(graph.nodes.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const std::shared_ptr<Device>& device : devices) names_.push_back(DeviceName::parse(device->name()));
  }

  void place() {
    for (std::size_t i = 0; i < parent_.size(); ++i) join_group(i);
    for (std::size_t i = 0; i < parent_.size(); ++i) constrain(i);
    std::vector<int> device_of(parent_.size(), -1);
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      if (!follows_consumer(graph_.nodes[i])) device_of[i] = choose(i, device_of);
    }
    for (std::size_t i = parent_.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      const int device = device_of[i];
      if (device < 0) continue;
      for (const Endpoint input : node.inputs) {
        const auto producer = static_cast<std::size_t>(input.node);
        if (device_of[producer] < 0) device_of[producer] = choose_for_consumer(producer, device);
      }
    }
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      graph_.nodes[i].device = devices_[static_cast<std::size_t>(device_of[i] < 0 ? choose(i, device_of) : device_of[i])]->name();
    }
  }

 private:
  using Allowed = std::vector<bool>;

  std::size_t root(std::size_t i) {
    while (parent_[i] != static_cast<std::int32_t>(i)) {
      parent_[i] = parent_[static_cast<std::size_t>(parent_[i])];
      i = static_cast<std::size_t>(parent_[i]);
    }
    return i;
  }
  void unite(std::size_t a, std::size_t b) { parent_[root(a)] = static_cast<std::int32_t>(root(b)); }

  void join_group(std::size_t i) {
    const Node& node = graph_.nodes[i];
    if (node.colocated_with >= 0) unite(i, static_cast<std::size_t>(node.colocated_with));
    // A handle cannot leave its device: whoever uses it is where the state is.
    for (const Endpoint input : node.inputs) {
      if (graph_.output(input).dtype == DType::resource) unite(i, static_cast<std::size_t>(input.node));
    }
  }

  /// Constants and fed edges have no work of their own: they are put where they are read first.
  static bool follows_consumer(const Node& node) {
    return node.device.empty() && node.colocated_with < 0 && (node.op->name == "Const" || node.is_fed_only);
  }
  static bool needs_kernel(const Node& node) { return !node.is_fed_only && node.op->name != "Const" && node.op->name != "Placeholder"; }

  void constrain(std::size_t i) {
    const Node& node = graph_.nodes[i];
    Allowed allowed(devices_.size(), true);
    if (!node.device.empty()) {
      const DeviceName wanted = DeviceName::parse(node.device);
      bool any = false;
      for (std::size_t d = 0; d < devices_.size(); ++d) any |= allowed[d] = wanted.matches(names_[d]);
      if (!any && soft_) allowed.assign(devices_.size(), true);
      if (!any && !soft_) fail(node, str_cat("no device of the session matches '", node.device, "'; it has ", device_list()));
    }
    if (needs_kernel(node)) {
      bool any = false;
      Allowed runnable = allowed;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        runnable[d] = allowed[d] && ops_.find_kernel(node.op->name, devices_[d]->type()) != nullptr;
        any |= runnable[d];
      }
      if (!any && soft_) {
        for (std::size_t d = 0; d < devices_.size(); ++d) {
          runnable[d] = ops_.find_kernel(node.op->name, devices_[d]->type()) != nullptr;
          any |= runnable[d];
        }
      }
      if (!any) {
        throw Error(not_found(str_cat("op ", node.op->name, " has no kernel for the devices it may run on"))
                        .with_node(node.op->name, node.name)
                        .with_location(node.where));
      }
      allowed = std::move(runnable);
    }
    const std::size_t group = root(i);
    const auto [found, is_new] = allowed_.try_emplace(group, allowed);
    if (is_new) return;
    bool any = false;
    Allowed both = found->second;
    for (std::size_t d = 0; d < both.size(); ++d) any |= both[d] = both[d] && allowed[d];
    if (!any) {
      if (soft_) return;
      fail(node, str_cat("'", node.device, "' contradicts the device of '", graph_.nodes[group].name, "', with which it must be placed"));
    }
    found->second = std::move(both);
  }

  int first_allowed(std::size_t i) {
    const Allowed& allowed = allowed_[root(i)];
    for (std::size_t d = 0; d < allowed.size(); ++d) {
      if (allowed[d]) return static_cast<int>(d);
    }
    return 0;
  }

  /// The group's device if it has one, else the first producer's if that is allowed, else the first allowed.
  int choose(std::size_t i, const std::vector<int>& device_of) {
    const std::size_t group = root(i);
    if (const auto found = chosen_.find(group); found != chosen_.end()) return found->second;
    const Node& node = graph_.nodes[i];
    int device = first_allowed(i);
    if (!node.inputs.empty()) {
      const int producers = device_of[static_cast<std::size_t>(node.inputs[0].node)];
      if (producers >= 0 && allowed_[group][static_cast<std::size_t>(producers)]) device = producers;
    }
    chosen_.emplace(group, device);
    return device;
  }

  int choose_for_consumer(std::size_t i, int consumer_device) {
    const std::size_t group = root(i);
    if (const auto found = chosen_.find(group); found != chosen_.end()) return found->second;
    const int device = allowed_[group][static_cast<std::size_t>(consumer_device)] ? consumer_device : first_allowed(i);
    chosen_.emplace(group, device);
    return device;
  }

  std::string device_list() const {
    std::string list;
    for (const std::shared_ptr<Device>& device : devices_) list += (list.empty() ? "" : ", ") + device->name();
    return list;
  }

  [[noreturn]] static void fail(const Node& node, std::string message) {
    throw Error(invalid_argument(std::move(message)).with_node(node.op->name, node.name).with_location(node.where));
  }

  StepGraph& graph_;
  std::span<const std::shared_ptr<Device>> devices_;
  const OpTable& ops_;
  bool soft_;
  std::vector<DeviceName> names_;
  std::vector<std::int32_t> parent_;
  std::unordered_map<std::size_t, Allowed> allowed_;
  std::unordered_map<std::size_t, int> chosen_;
};

/// One device, and no node asks for another by name: nothing to decide.
DFLOW_INLINE bool place_on_only_device(StepGraph& graph, const Device& device) {
  for (const Node& node : graph.nodes) {
    if (!node.device.empty() && node.device != device.name()) return false;
  }
  for (Node& node : graph.nodes) node.device = device.name();
  return true;
}

}  // namespace detail

DFLOW_INLINE void place(StepGraph& graph, std::span<const std::shared_ptr<Device>> devices, const OpTable& ops,
                        bool soft_placement) {
  if (devices.size() == 1 && detail::place_on_only_device(graph, *devices.front())) return;
  detail::Placer(graph, devices, ops, soft_placement).place();
}

DFLOW_INLINE std::string placement_text(const StepGraph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += str_cat(node.name, ": ", node.op->name, " -> ", node.device, "\n");
  return text;
}

}  // namespace dflow
