#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/passes/partition.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace dflow {

namespace detail {

/// Walks a placed graph in topological order and deals its nodes out to partitions.
class Partitioner {
 public:
  Partitioner(StepGraph graph, std::span<const std::shared_ptr<Device>> devices)
      : graph_(std::move(graph)), devices_(devices), parts_(devices.size()), new_id_(graph_.nodes.size()) {
    for (std::size_t d = 0; d < devices.size(); ++d) {
      parts_[d].device = d;
      device_of_name_.emplace(devices[d]->name(), d);
    }
  }

  std::vector<Partition> partition() {
    for (const Node& node : graph_.nodes) device_of_.push_back(device_of_name_.at(node.device));
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) add_node(static_cast<NodeId>(i));
    for (std::size_t f = 0; f < graph_.feeds.size(); ++f) add_feed(f);
    for (std::size_t f = 0; f < graph_.fetches.size(); ++f) {
      Partition& part = part_of(graph_.fetches[f].node);
      part.graph.fetches.push_back({id_of(graph_.fetches[f].node), graph_.fetches[f].index});
      part.fetches.push_back(f);
    }
    for (const NodeId target : graph_.targets) part_of(target).graph.targets.push_back(id_of(target));
    std::vector<Partition> used;
    for (Partition& part : parts_) {
      if (!part.graph.nodes.empty()) used.push_back(std::move(part));
    }
    return used;
  }

 private:
  std::size_t device(NodeId id) const { return device_of_[static_cast<std::size_t>(id)]; }
  Partition& part_of(NodeId id) { return parts_[device(id)]; }
  NodeId id_of(NodeId id) const { return new_id_[static_cast<std::size_t>(id)]; }

  void add_node(NodeId id) {
    Node node = graph_.node(id);
    const std::size_t here = device(id);
    for (Endpoint& input : node.inputs) input = bring(input, here);
    for (NodeId& control : node.control_inputs) {
      control = device(control) == here ? id_of(control) : bring_control(control, here);
    }
    if (node.colocated_with >= 0) node.colocated_with = -1;
    new_id_[static_cast<std::size_t>(id)] = append(here, std::move(node));
  }

  NodeId append(std::size_t device, Node node) {
    std::vector<Node>& nodes = parts_[device].graph.nodes;
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size()) - 1;
  }

  bool is_fed(Endpoint edge) const {
    for (const Endpoint feed : graph_.feeds) {
      if (feed == edge) return true;
    }
    return false;
  }

  /// The edge as nodes on device `to` see it: itself, or the output of a Recv.
  Endpoint bring(Endpoint edge, std::size_t to) {
    if (device(edge.node) == to) return {id_of(edge.node), edge.index};
    const auto [found, is_new] = received_.try_emplace({edge.node, edge.index, to}, -1);
    if (!is_new) return {found->second, 0};
    if (is_fed(edge)) return {found->second = mirror_fed(edge, to), 0};
    const Node& source = graph_.node(edge.node);
    const std::string name = edge.index == 0 ? source.name : str_cat(source.name, ":", edge.index);
    add_send(device(edge.node), to, name, {id_of(edge.node), edge.index}, source, graph_.output(edge).dtype);
    return {found->second = add_recv(device(edge.node), to, name, source, graph_.output(edge)), 0};
  }

  /// A fed tensor needs no Send: it is fed to both sides.
  NodeId mirror_fed(Endpoint edge, std::size_t to) {
    Node node = graph_.node(edge.node);
    node.inputs.clear();
    node.control_inputs.clear();
    node.colocated_with = -1;
    node.outputs = {graph_.output(edge)};
    node.is_fed_only = true;
    node.device = devices_[to]->name();
    const NodeId id = append(to, std::move(node));
    mirrors_.push_back({edge, to, id});
    return id;
  }

  /// A control edge travels as a Send and Recv of an empty tensor that waits for its source.
  NodeId bring_control(NodeId source_id, std::size_t to) {
    const auto [found, is_new] = received_.try_emplace({source_id, -1, to}, -1);
    if (!is_new) return found->second;
    const std::size_t from = device(source_id);
    const Node& source = graph_.node(source_id);
    Node token;
    token.op = &op_def<Const>;
    token.name = str_cat(source.name, "/_token_", to);
    token.types = type_args<float>();
    token.attrs = std::make_shared<const Const::Attrs>(Const::Attrs{Tensor<float>({0}, {})});
    token.outputs = {{DType::float32, PartialShape({0})}};
    token.device = devices_[from]->name();
    token.where = source.where;
    const NodeId token_id = append(from, std::move(token));
    const std::string name = str_cat("^", source.name);
    const NodeId send = add_send(from, to, name, {token_id, 0}, source, DType::float32);
    parts_[from].graph.node(send).control_inputs.push_back(id_of(source_id));
    return found->second = add_recv(from, to, name, source, {DType::float32, PartialShape({0})});
  }

  NodeId add_send(std::size_t from, std::size_t to, const std::string& tensor_name, Endpoint value, const Node& source,
                  DType dtype) {
    Node node;
    node.op = &op_def<Send>;
    node.name = str_cat(tensor_name, "/_send_", to);
    node.types.push_back(dtype);
    node.inputs = {value};
    node.attrs = std::make_shared<const Send::Attrs>(Send::Attrs{tensor_name, devices_[from]->name(), devices_[to]->name(), 0});
    node.device = devices_[from]->name();
    node.where = source.where;
    const NodeId id = append(from, std::move(node));
    parts_[from].graph.targets.push_back(id);
    return id;
  }

  NodeId add_recv(std::size_t from, std::size_t to, const std::string& tensor_name, const Node& source,
                  const OutputInfo& info) {
    Node node;
    node.op = &op_def<Recv>;
    node.name = str_cat(tensor_name, "/_recv_", from);
    node.types.push_back(info.dtype);
    node.attrs = std::make_shared<const Recv::Attrs>(
        Recv::Attrs{tensor_name, devices_[from]->name(), devices_[to]->name(), 0, info.shape});
    node.outputs = {info};
    node.device = devices_[to]->name();
    node.where = source.where;
    return append(to, std::move(node));
  }

  void add_feed(std::size_t f) {
    const Endpoint feed = graph_.feeds[f];
    Partition& home = part_of(feed.node);
    home.graph.feeds.push_back({id_of(feed.node), feed.index});
    home.feeds.push_back(f);
    for (const Mirror& mirror : mirrors_) {
      if (!(mirror.edge == feed)) continue;
      parts_[mirror.device].graph.feeds.push_back({mirror.node, 0});
      parts_[mirror.device].feeds.push_back(f);
    }
  }

  struct Mirror {
    Endpoint edge;
    std::size_t device;
    NodeId node;
  };

  StepGraph graph_;
  std::span<const std::shared_ptr<Device>> devices_;
  std::vector<Partition> parts_;
  std::vector<NodeId> new_id_;
  std::vector<std::size_t> device_of_;
  std::map<std::string, std::size_t> device_of_name_;
  std::map<std::tuple<NodeId, std::int32_t, std::size_t>, NodeId> received_;
  std::vector<Mirror> mirrors_;
};

}  // namespace detail

DFLOW_INLINE std::vector<Partition> partition(StepGraph graph, std::span<const std::shared_ptr<Device>> devices) {
  bool on_first_alone = true;
  for (const Node& node : graph.nodes) on_first_alone &= node.device == devices.front()->name();
  if (!on_first_alone) return detail::Partitioner(std::move(graph), devices).partition();
  Partition whole;
  for (std::size_t i = 0; i < graph.feeds.size(); ++i) whole.feeds.push_back(i);
  for (std::size_t i = 0; i < graph.fetches.size(); ++i) whole.fetches.push_back(i);
  whole.graph = std::move(graph);
  std::vector<Partition> parts;
  parts.push_back(std::move(whole));
  return parts;
}

}  // namespace dflow
