#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/session/session.hpp>
#include <dflow/trace/drawing.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

/// The first `max_bytes` or fewer, so that no character is cut in two, and an ellipsis if the text was cut.
std::string cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(end)) --end;
  return str_cat(text.substr(0, end), "\xe2\x80\xa6");
}

/// The scopes of a node's name, "a/b" of "a/b/c". If passes have named the node after several nodes, the first counts.
std::string_view scope_of(std::string_view name) {
  const std::size_t end = name.substr(0, name.find(' ')).rfind('/');
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

std::size_t scope_depth(std::string_view scope) {
  return scope.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(scope.begin(), scope.end(), '/'));
}

/// The outermost `depth` scopes. Precondition: `depth` is at least 1, and there are as many scopes.
std::string_view outer_scopes(std::string_view scope, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < depth; ++i) end = std::min(scope.find('/', end), scope.size()) + 1;
  return scope.substr(0, end - 1);
}

std::string edge_label(const OutputInfo& output) {
  return str_cat(dtype_name(output.dtype), ' ', output.shape.to_string());
}

/// The text of the attribute of that name; "" if there is none.
std::string attr_text(const Node& node, std::string_view attr) {
  for (const AttrField& field : node.op->attr_fields) {
    if (field.name == attr) return attr_to_string(attr_of(node, field));
  }
  return {};
}

/// Collects nodes and edges and makes a drawing of no more than the options allow.
class DrawingBuilder {
 public:
  explicit DrawingBuilder(const DrawingOptions& options) : options_(options) {
    if (options.max_nodes == 0 || options.max_edges == 0) {
      throw_error(Status::invalid_argument("a drawing of no nodes, or of no edges"));
    }
    drawing_.title = options.title;
  }

  std::int32_t add_box(Drawing::Box::Kind kind, std::string_view label, std::int32_t parent) {
    drawing_.boxes.push_back({label_text(label), kind, parent});
    return static_cast<std::int32_t>(drawing_.boxes.size()) - 1;
  }
  /// A box for the body of a function. The scopes of its nodes begin with the function's name.
  std::int32_t add_function(const std::string& name, std::int32_t parent) {
    const std::int32_t box = add_box(Drawing::Box::Kind::function, str_cat("function ", name), parent);
    function_names_.emplace(box, name);
    return box;
  }
  std::size_t add_node(const Node& node, std::string device, std::int32_t box) {
    std::string_view name = node.name;
    if (const auto function = function_names_.find(box); function != function_names_.end()) {
      const std::string& outer = function->second;
      if (name == outer)
        name.remove_prefix(scope_of(name).empty() ? 0 : scope_of(name).size() + 1);
      else if (name.starts_with(outer) && name[outer.size()] == '/')
        name.remove_prefix(outer.size() + 1);
    }
    found_.push_back({&node, name, std::move(device), box, {}});
    return found_.size() - 1;
  }
  const Node& node(std::size_t i) const { return *found_[i].node; }
  /// Adds a remark about the node.
  void remark(std::size_t i, std::string_view text) { found_[i].remark = text; }
  void add_edge(std::size_t from, std::int32_t output, std::size_t to, Drawing::Edge::Kind kind) {
    edges_.push_back({from, to, output, kind});
  }
  std::size_t num_nodes() const { return found_.size(); }

  Drawing build() {
    choose_depth();
    drawn_.assign(found_.size(), -1);
    for (std::size_t i = 0; i < found_.size(); ++i) draw_node(i);
    for (const FoundEdge& edge : edges_) draw_edge(edge);
    for (Drawing::Node& node : drawing_.nodes) {
      if (node.kind == Drawing::Node::Kind::scope) node.op += " nodes";
    }
    drop_empty_boxes();
    if (left_out_nodes_ > 0) drawing_.note = str_cat(left_out_nodes_, " more nodes");
    if (left_out_edges_ > 0) {
      drawing_.note += str_cat(drawing_.note.empty() ? "" : ", ", left_out_edges_, " more edges");
    }
    if (!drawing_.note.empty()) drawing_.note += " are not drawn";
    return std::move(drawing_);
  }

 private:
  struct FoundNode {
    const Node* node;
    std::string_view name;  ///< in its box
    std::string device;
    std::int32_t box;  ///< of function or part
    std::string remark;
  };
  struct FoundEdge {
    std::size_t from, to;
    std::int32_t output;
    Drawing::Edge::Kind kind;
  };

  std::string label_text(std::string_view text) const { return cut_text(text, options_.max_label_bytes); }
  static std::string key_of(std::int32_t box, std::string_view scope) { return str_cat(box, ':', scope); }

  /// The key of the scope that is drawn in place of the node, "" for a node that is drawn itself.
  std::string closed_scope(const FoundNode& found) const {
    const std::string_view scope = scope_of(found.name);
    return scope_depth(scope) <= depth_ ? std::string() : key_of(found.box, outer_scopes(scope, depth_ + 1));
  }

  void choose_depth() {
    std::size_t deepest = 0;
    for (const FoundNode& found : found_) deepest = std::max(deepest, scope_depth(scope_of(found.name)));
    for (depth_ = std::min(options_.max_depth, deepest); depth_ > 0; --depth_) {
      std::unordered_set<std::string> closed;
      std::size_t count = 0;
      for (const FoundNode& found : found_) {
        const std::string key = closed_scope(found);
        if (key.empty() || closed.insert(key).second) ++count;
      }
      if (count <= options_.max_nodes) return;
    }
  }

  void draw_node(std::size_t i) {
    const FoundNode& found = found_[i];
    const std::string key = closed_scope(found);
    if (!key.empty()) {
      if (const auto at = closed_.find(key); at != closed_.end()) {
        drawn_[i] = at->second;
        if (at->second >= 0)
          join_scope(drawing_.nodes[static_cast<std::size_t>(at->second)], found);
        else
          ++left_out_nodes_;
        return;
      }
    }
    if (drawing_.nodes.size() == options_.max_nodes) {
      ++left_out_nodes_;
      if (!key.empty()) closed_.emplace(key, -1);
      return;
    }
    drawn_[i] = static_cast<std::int32_t>(drawing_.nodes.size());
    if (key.empty()) {
      drawing_.nodes.push_back(open_node(found));
    } else {
      closed_.emplace(key, drawn_[i]);
      drawing_.nodes.push_back(scope_node(found));
    }
  }

  Drawing::Node open_node(const FoundNode& found) {
    const Node& node = *found.node;
    const std::string_view scope = scope_of(found.name);
    Drawing::Node drawn;
    drawn.label = label_text(found.name.substr(scope.empty() ? 0 : scope.size() + 1));
    drawn.op = label_text(node.op->name);
    for (const std::string& function : called_functions(node)) {
      drawn.calls += str_cat(drawn.calls.empty() ? "calls " : ", ", function);
    }
    drawn.calls = label_text(drawn.calls);
    drawn.tooltip = tooltip_of(found);
    drawn.kind = kind_of_node(node);
    drawn.box = box_of(found.box, scope, scope_depth(scope));
    drawn.device = device_number(found.device);
    return drawn;
  }

  Drawing::Node scope_node(const FoundNode& found) {
    const std::string_view scope = outer_scopes(scope_of(found.name), depth_ + 1);
    const std::string_view around = scope_of(scope);
    Drawing::Node drawn;
    drawn.label = label_text(scope.substr(around.empty() ? 0 : around.size() + 1));
    drawn.op = "1";
    drawn.tooltip = str_cat("scope ", cut_text(scope, 8 * options_.max_label_bytes));
    drawn.kind = Drawing::Node::Kind::scope;
    drawn.box = box_of(found.box, scope, depth_);
    drawn.device = device_number(found.device);
    return drawn;
  }

  void join_scope(Drawing::Node& scope, const FoundNode& found) {
    scope.op = str_cat(std::stoull(scope.op) + 1);
    // A scope with nodes of several devices has the colour of none.
    if (scope.device >= 0 && drawing_.devices[static_cast<std::size_t>(scope.device)] != label_text(found.device)) {
      scope.device = -1;
    }
  }

  std::string tooltip_of(const FoundNode& found) const {
    const Node& node = *found.node;
    std::string text = str_cat(node.name, "\n", node.op->name);
    for (std::size_t i = 0; i < node.types.size; ++i)
      text += str_cat(i == 0 ? " of " : ", ", dtype_name(node.types[i]));
    for (const AttrField& field : node.op->attr_fields) {
      const std::string value = attr_to_string(attr_of(node, field));
      text += str_cat("\n", field.name, " = ", cut_text(value, options_.max_label_bytes));
    }
    if (!found.device.empty()) text += str_cat("\n", found.device);
    if (!found.remark.empty()) text += str_cat("\n", found.remark);
    const std::string_view file = node.where.file_name();
    if (!file.empty()) text += str_cat("\n", file.substr(file.rfind('/') + 1), ':', node.where.line());
    return cut_text(text, 8 * options_.max_label_bytes);
  }

  static Drawing::Node::Kind kind_of_node(const Node& node) {
    const OpRole role = node.op->role;
    if (role == OpRole::constant || role == OpRole::placeholder || role == OpRole::argument) {
      return Drawing::Node::Kind::source;
    }
    const bool gives_handle = std::any_of(node.outputs.begin(), node.outputs.end(),
                                          [](const OutputInfo& output) { return !is_element(output.dtype); });
    return role == OpRole::variable || (node.op->is_stateful && gives_handle) ? Drawing::Node::Kind::state
                                                                              : Drawing::Node::Kind::operation;
  }

  /// The box of the outermost `depth` scopes inside of `box`.
  std::int32_t box_of(std::int32_t box, std::string_view scope, std::size_t depth) {
    std::int32_t inner = box;
    for (std::size_t i = 1; i <= depth; ++i) {
      const std::string_view path = outer_scopes(scope, i);
      const auto [at, is_new] = scopes_.try_emplace(key_of(box, path), -1);
      if (is_new) {
        const std::string_view around = scope_of(path);
        at->second = add_box(Drawing::Box::Kind::scope, path.substr(around.empty() ? 0 : around.size() + 1), inner);
      }
      inner = at->second;
    }
    return inner;
  }

  std::int32_t device_number(const std::string& device) {
    if (device.empty()) return -1;
    const auto [at, is_new] = devices_.try_emplace(device, static_cast<std::int32_t>(drawing_.devices.size()));
    if (is_new) drawing_.devices.push_back(label_text(device));
    return at->second;
  }

  void draw_edge(const FoundEdge& edge) {
    const std::int32_t from = drawn_[edge.from], to = drawn_[edge.to];
    if (from < 0 || to < 0) {
      ++left_out_edges_;
      return;
    }
    if (from == to && drawing_.nodes[static_cast<std::size_t>(from)].kind == Drawing::Node::Kind::scope) return;
    const bool is_of_scope = drawing_.nodes[static_cast<std::size_t>(from)].kind == Drawing::Node::Kind::scope;
    const std::int32_t output = is_of_scope || edge.kind != Drawing::Edge::Kind::data ? 0 : edge.output;
    const std::string key = str_cat(from, ' ', to, ' ', edge.kind, ' ', output);
    const auto [at, is_new] = edge_numbers_.try_emplace(key, drawing_.edges.size());
    if (!is_new) return join_edge(drawing_.edges[at->second], at->second, edge);
    if (drawing_.edges.size() == options_.max_edges) {
      edge_numbers_.erase(at);
      ++left_out_edges_;
      return;
    }
    const Node& node = edge.kind == Drawing::Edge::Kind::transfer ? *found_[edge.to].node : *found_[edge.from].node;
    const bool has_label =
        edge.kind != Drawing::Edge::Kind::control && static_cast<std::size_t>(edge.output) < node.outputs.size();
    drawing_.edges.push_back(
        {from, to, edge.kind, output,
         has_label ? label_text(edge_label(node.outputs[static_cast<std::size_t>(edge.output)])) : std::string(), 1});
    tensors_.insert(tensor_key(at->second, edge));
  }

  static std::string tensor_key(std::size_t number, const FoundEdge& edge) {
    return str_cat(number, ' ', edge.from, ' ', edge.output);
  }
  void join_edge(Drawing::Edge& drawn, std::size_t number, const FoundEdge& edge) {
    ++drawn.count;
    if (drawn.kind != Drawing::Edge::Kind::data || !tensors_.insert(tensor_key(number, edge)).second) return;
    // Counts the tensors of a scope that is drawn as one node.
    const std::size_t tensors = ++num_tensors_[number];
    drawn.label = str_cat(tensors + 1, " tensors");
  }

  void drop_empty_boxes() {
    std::vector<bool> is_used(drawing_.boxes.size());
    for (const Drawing::Node& node : drawing_.nodes) {
      if (node.box >= 0) is_used[static_cast<std::size_t>(node.box)] = true;
    }
    std::vector<Drawing::Box> kept;
    std::vector<std::int32_t> number(drawing_.boxes.size(), -1);
    for (std::size_t i = drawing_.boxes.size(); i-- > 0;) {
      const std::int32_t parent = drawing_.boxes[i].parent;
      if (is_used[i] && parent >= 0) is_used[static_cast<std::size_t>(parent)] = true;
    }
    for (std::size_t i = 0; i < drawing_.boxes.size(); ++i) {
      if (!is_used[i]) continue;
      number[i] = static_cast<std::int32_t>(kept.size());
      kept.push_back(std::move(drawing_.boxes[i]));
      if (kept.back().parent >= 0) kept.back().parent = number[static_cast<std::size_t>(kept.back().parent)];
    }
    for (Drawing::Node& node : drawing_.nodes) {
      if (node.box >= 0) node.box = number[static_cast<std::size_t>(node.box)];
    }
    drawing_.boxes = std::move(kept);
  }

  const DrawingOptions& options_;
  Drawing drawing_;
  std::vector<FoundNode> found_;
  std::vector<FoundEdge> edges_;
  std::unordered_map<std::int32_t, std::string> function_names_;  ///< by their boxes
  std::size_t depth_ = 0;                                         ///< scopes nested deeper than this are drawn as nodes
  std::vector<std::int32_t> drawn_;
  std::unordered_map<std::string, std::int32_t> closed_, scopes_, devices_;
  std::unordered_map<std::string, std::size_t> edge_numbers_;
  std::unordered_set<std::string> tensors_;
  std::unordered_map<std::size_t, std::size_t> num_tensors_;  ///< of an edge, besides the first
  std::size_t left_out_nodes_ = 0;
  std::size_t left_out_edges_ = 0;
};

/// Adds the nodes of step graphs and of all bodies that they run.
class StepGraphDrawer {
 public:
  StepGraphDrawer(DrawingBuilder& builder, std::span<const DeviceInfo> devices)
      : builder_(builder), devices_(devices) {}

  /// `device` is the device of all nodes, unless there are `devices`.
  void add(const StepGraph& graph, std::string_view device, std::int32_t box) {
    add_nodes(graph, device, box);
    for (std::size_t i = 0; i < bodies_.size(); ++i) {  // adds the bodies of bodies too: calls may be nested deeply
      const Body body = bodies_[i];
      add_nodes(*body.graph, device, builder_.add_function(body.name, box));
    }
    bodies_.clear();
    seen_.clear();
  }
  void join_transfers() {
    for (const auto& [key, recv] : recvs_) {
      if (const auto send = sends_.find(key); send != sends_.end()) {
        builder_.add_edge(send->second, 0, recv, Drawing::Edge::Kind::transfer);
      }
    }
  }

 private:
  struct Body {
    std::string name;
    const StepGraph* graph;
  };

  void add_nodes(const StepGraph& graph, std::string_view device, std::int32_t box) {
    const std::size_t first = builder_.num_nodes();
    for (const StepNode& node : graph.nodes) {
      const bool is_placed = node.placed_on >= 0 && static_cast<std::size_t>(node.placed_on) < devices_.size();
      const std::size_t number = builder_.add_node(
          *node, is_placed ? devices_[static_cast<std::size_t>(node.placed_on)].name : std::string(device), box);
      note_transfer(*node, number);
      add_bodies(graph, node);
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const StepNode& node = graph.nodes[StepNodeId(i)];
      for (const StepEndpoint input : graph.inputs_of(node)) {
        builder_.add_edge(first + input.node.position(), input.index, first + i, Drawing::Edge::Kind::data);
      }
      for (const StepNodeId control : graph.controls_of(node)) {
        builder_.add_edge(first + control.position(), 0, first + i, Drawing::Edge::Kind::control);
      }
    }
    for (const StepEndpoint feed : graph.feeds) builder_.remark(first + feed.node.position(), "fed");
    for (const StepEndpoint fetch : graph.fetches) builder_.remark(first + fetch.node.position(), "fetched");
  }
  void add_bodies(const StepGraph& graph, const StepNode& node) {
    const StepCall* call = graph.call_of(node);
    if (call == nullptr) return;
    const std::vector<std::string> names = called_functions(*node);
    for (std::size_t i = 0; i < call->bodies.size(); ++i) {
      const StepGraph* body = call->bodies[i].get();
      if (body == nullptr || !seen_.insert(body).second) continue;
      bodies_.push_back({i < names.size() ? names[i] : node->name, body});
    }
  }
  void note_transfer(const Node& node, std::size_t number) {
    if (node.op->role != OpRole::send && node.op->role != OpRole::recv) return;
    std::string key;
    for (const std::string_view attr : {"tensor_name", "send_device", "recv_device", "host_memory"}) {
      key += attr_text(node, attr) + "\n";
    }
    (node.op->role == OpRole::send ? sends_ : recvs_).emplace(std::move(key), number);
  }

  DrawingBuilder& builder_;
  std::span<const DeviceInfo> devices_;
  std::vector<Body> bodies_;
  std::unordered_set<const StepGraph*> seen_;
  std::map<std::string, std::size_t> sends_, recvs_;
};

}  // namespace detail

Drawing drawing_of(const Graph& graph, const DrawingOptions& options) {
  detail::DrawingBuilder builder(options);
  GraphStore* store = graph.store();
  const GraphStore::Nodes nodes = store->nodes();
  std::unordered_map<NodeId, std::int32_t> boxes;  // by the nodes that functions begin with
  for (const NodeId id : nodes.indices()) {
    const Node& node = nodes[id];
    const auto outer = node.function.is_valid() ? boxes.find(node.function) : boxes.end();
    std::int32_t box = outer == boxes.end() ? -1 : outer->second;
    if (node.op->role == OpRole::function) {
      box = builder.add_function(node.name, box);
      boxes.emplace(id, box);
    }
    builder.add_node(node, options.device_of ? options.device_of(Operation(store, id)) : node.device, box);
  }
  const auto is_there = [&](NodeId id) { return id.is_valid() && id.position() < nodes.size(); };
  for (const NodeId id : nodes.indices()) {
    const Node& node = nodes[id];
    for (const Endpoint input : node.inputs) {
      if (!is_there(input.node)) continue;
      builder.add_edge(input.node.position(), input.index, id.position(), Drawing::Edge::Kind::data);
    }
    for (const NodeId control : node.control_inputs) {
      if (!is_there(control)) continue;
      builder.add_edge(control.position(), 0, id.position(), Drawing::Edge::Kind::control);
    }
    if (node.op->role != OpRole::merge) continue;
    for (const NodeId next : store->next_iterations(id)) {  // back edges of loops
      if (is_there(next)) builder.add_edge(next.position(), 0, id.position(), Drawing::Edge::Kind::data);
    }
  }
  return builder.build();
}

Drawing drawing_of(const Graph& graph, const Session& session, const DrawingOptions& options) {
  DrawingOptions placed = options;
  placed.device_of = [&](const Operation& operation) -> std::string {
    try {
      return session.device_of(operation);
    } catch (const Error& error) {
      if (error.code() != Code::not_found && error.code() != Code::invalid_argument) throw;
      return "no device";
    }
  };
  return drawing_of(graph, placed);
}

Drawing drawing_of(const StepGraph& graph, std::span<const DeviceInfo> devices, const DrawingOptions& options) {
  detail::DrawingBuilder builder(options);
  detail::StepGraphDrawer drawer(builder, devices);
  drawer.add(graph, "", -1);
  drawer.join_transfers();
  return builder.build();
}

Drawing drawing_of(std::span<const DeviceGraph> parts, const DrawingOptions& options) {
  detail::DrawingBuilder builder(options);
  detail::StepGraphDrawer drawer(builder, {});
  for (const DeviceGraph& part : parts) {
    if (part.graph == nullptr)
      throw_error(Status::invalid_argument(str_cat("no graph of '", part.device, "' to be drawn")));
    drawer.add(*part.graph, part.device, builder.add_box(Drawing::Box::Kind::part, part.device, -1));
  }
  drawer.join_transfers();
  return builder.build();
}

}  // namespace dflow
