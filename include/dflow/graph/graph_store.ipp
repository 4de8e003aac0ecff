#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_store.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <mutex>
#include <utility>

namespace dflow {

// ---- scopes ----

namespace detail {

/// The scopes that are open, the innermost last; the first one is the scope of the graph itself and is never left.
class ScopeStack {
 public:
  const GraphStore::Scope& current() const noexcept { return scopes_.back().scope; }

  std::uint64_t enter(GraphStore::Scope scope) {
    scopes_.push_back({++last_number_, std::move(scope)});
    return last_number_;
  }

  void leave(std::uint64_t number) noexcept {
    const auto found = std::find_if(scopes_.rbegin(), scopes_.rend(),
                                    [number](const Numbered& each) { return each.number == number; });
    if (found != scopes_.rend()) scopes_.erase(std::next(found).base());
  }

 private:
  struct Numbered {
    std::uint64_t number = 0;
    GraphStore::Scope scope;
  };
  std::vector<Numbered> scopes_{Numbered{}};
  std::uint64_t last_number_ = 0;
};

}  // namespace detail

ScopeGuard::~ScopeGuard() {
  if (scopes_ != nullptr) scopes_->leave(scope_);
}

const GraphStore::Scope& GraphStore::scope() const noexcept { return scopes_->current(); }

ScopeGuard GraphStore::enter(Scope scope) {
  const std::uint64_t number = scopes_->enter(std::move(scope));
  return {scopes_, number};
}

void detail::require_node(const GraphStore& graph, const Operation& operation, std::string_view function,
                          std::source_location where) {
  const auto reject = [&](std::string_view what) {
    throw_error(
        Status::invalid_argument(str_cat(function, ": ", what)).with_location(graph.scope().where.value_or(where)));
  };
  if (!operation.is_of(&graph)) reject("an operation is empty or belongs to another graph");
  const NodeId id = operation.node_id();
  if (!id.is_valid() || id.position() >= graph.num_appended())
    reject(str_cat("the graph has no node number ", id.value()));
}

ScopeGuard enter_name_scope(GraphStore& graph, std::string_view name, std::source_location where) {
  check_node_name(name, "name_scope", graph.scope().where.value_or(where));
  GraphStore::Scope scope = graph.scope();
  scope.name_prefix = graph.unique_scope_name(name) + "/";
  return graph.enter(std::move(scope));
}

ScopeGuard enter_device(GraphStore& graph, std::string_view name, std::source_location where) {
  GraphStore::Scope scope = graph.scope();
  try {
    const DeviceName inner = DeviceName::parse(name);
    scope.device = (scope.device.empty() ? inner : DeviceName::parse(scope.device).merged_with(inner)).to_string();
  } catch (const Error& error) {
    throw_error(error.status().with_location(scope.where.value_or(where)));
  }
  return graph.enter(std::move(scope));
}

ScopeGuard enter_colocation(GraphStore& graph, Operation operation, std::source_location where) {
  detail::require_node(graph, operation, "colocate_with", where);
  GraphStore::Scope scope = graph.scope();
  scope.colocate(operation.node_id());
  return graph.enter(std::move(scope));
}

ScopeGuard enter_control_dependencies(GraphStore& graph, std::span<const Operation> operations,
                                      std::source_location where) {
  GraphStore::Scope scope = graph.scope();
  for (const Operation& operation : operations) {
    detail::require_node(graph, operation, "control_dependencies", where);
    scope.control_inputs.push_back(operation.node_id());
  }
  return graph.enter(std::move(scope));
}

ScopeGuard enter_place(GraphStore& graph, std::source_location where) {
  GraphStore::Scope scope = graph.scope();
  if (!scope.where) scope.where = where;
  return graph.enter(std::move(scope));
}

Composite::Composite(GraphStore& graph, std::source_location where)
    : draft_(graph), place_(enter_place(graph, where)), num_exceptions_(std::uncaught_exceptions()) {}

Composite::~Composite() {
  if (std::uncaught_exceptions() == num_exceptions_) draft_.publish();
}

// ---- names ----

namespace detail {

bool is_legal_node_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool legal = !name.empty();
  for (std::size_t i = 0; legal && i < name.size(); ++i) {
    const char c = name[i];
    legal = is_letter(c) || is_digit(c) || c == '.' || c == '_' || (i > 0 && (c == '/' || c == '-' || c == '>'));
  }
  return legal;
}

[[noreturn]] void reject_node_name(std::string_view name, std::string_view op, std::source_location where) {
  throw_error(Status::invalid_argument(
                  str_cat("'", name, "' is not a legal node name: letters, digits and _./-> only, not empty"))
                  .with_node(op, name)
                  .with_location(where));
}

}  // namespace detail

void check_node_name(std::string_view name, std::string_view op, std::source_location where) {
  if (name.size() > 4096 || !detail::is_legal_node_name(name)) detail::reject_node_name(name, op, where);
}

namespace detail {
inline constexpr std::string_view joint_of_names = " + ";
}  // namespace detail

void check_step_node_name(std::string_view name, std::string_view op, std::source_location where) {
  constexpr std::string_view joint = detail::joint_of_names;
  bool legal = name.size() <= 65536;
  std::string_view rest = name;
  for (bool more = legal; more;) {
    const std::size_t end = rest.find(joint);
    more = end != std::string_view::npos;
    legal = legal && detail::is_legal_node_name(rest.substr(0, end));
    if (more) rest.remove_prefix(end + joint.size());
  }
  if (!legal) detail::reject_node_name(name, op, where);
}

std::string step_node_copy(std::string_view name, int copy) { return str_cat(name, detail::joint_of_names, copy); }

std::string step_node_beside(std::string_view name, std::string_view what) {
  return str_cat(name, detail::joint_of_names, what);
}

std::string_view without_copy(std::string_view name) noexcept {
  const std::size_t joint = name.rfind(detail::joint_of_names);
  if (joint == std::string_view::npos) return name;
  const std::string_view last = name.substr(joint + detail::joint_of_names.size());
  return last.find_first_not_of("0123456789") == std::string_view::npos ? name.substr(0, joint) : name;
}

std::string GraphStore::unique_name(std::string_view requested) {
  std::string name = scope().name_prefix;
  name += requested;
  if (!has_name(name) && next_suffix_.find(name) == next_suffix_.end()) return name;
  const std::unique_lock lock(mutex_);
  int& suffix = next_suffix_[name];
  std::string candidate;
  do {
    candidate = str_cat(name, "_", ++suffix);
  } while (has_name(candidate));
  return candidate;
}

std::string GraphStore::unique_scope_name(std::string_view requested) {
  std::string unique = unique_name(requested);
  reserve_scope_name(unique);
  return unique;
}

void GraphStore::reserve_scope_name(const std::string& name) {
  const std::unique_lock lock(mutex_);
  next_suffix_.try_emplace(name, 0);
}

void GraphStore::reserve_scopes_of(std::string_view node_name) {
  const std::unique_lock lock(mutex_);
  for (std::size_t at = node_name.find('/'); at != std::string_view::npos; at = node_name.find('/', at + 1)) {
    next_suffix_.try_emplace(std::string(node_name.substr(0, at)), 0);
  }
}

// ---- the store ----

namespace detail {

/// The anchors that no graph has now, and the number of the last graph.
struct GraphAnchors {
  std::mutex mutex;
  GraphAnchor* free = nullptr;
  std::uint64_t last_number = 0;
};

GraphAnchors& graph_anchors() {
  // Never destroyed: handles of static storage may outlive any order of destruction.
  static GraphAnchors* const all = new GraphAnchors;
  return *all;
}

GraphAnchor* take_anchor(GraphStore* graph) {
  GraphAnchors& all = graph_anchors();
  const std::lock_guard lock(all.mutex);
  GraphAnchor* anchor = all.free;
  if (anchor == nullptr) anchor = new GraphAnchor;
  all.free = std::exchange(anchor->next_free, nullptr);
  anchor->graph = graph;
  anchor->number.store(++all.last_number, std::memory_order_relaxed);
  return anchor;
}

}  // namespace detail

void GraphStore::LeaveAnchor::operator()(detail::GraphAnchor* anchor) const noexcept {
  detail::GraphAnchors& all = detail::graph_anchors();
  const std::lock_guard lock(all.mutex);
  anchor->number.store(0, std::memory_order_relaxed);
  anchor->graph = nullptr;
  anchor->next_free = std::exchange(all.free, anchor);
}

GraphStore::GraphStore(GraphOptions options)
    : anchor_(detail::take_anchor(this)),
      number_(anchor_->number.load(std::memory_order_relaxed)),
      options_(options),
      scopes_(std::make_shared<detail::ScopeStack>()) {}

GraphStore::GraphStore(const GraphStore& other) : GraphStore(other.options_) {
  const std::shared_lock lock(other.mutex_);
  const Nodes nodes = other.nodes();
  for (const NodeId id : nodes.indices()) append(nodes[id]);
  next_suffix_ = other.next_suffix_;
  collections_ = other.collections_;
  for (auto& [name, ids] : collections_) std::erase_if(ids, [&](NodeId id) { return id.position() >= nodes.size(); });
  random_ops_ = other.random_ops_;
}

GraphStore::~GraphStore() = default;

NodeId GraphStore::append(Node node) {
  const std::size_t position = nodes_->num_appended();
  if (position >= NodeId::max_position) {
    throw_error(Status::resource_exhausted("the graph has as many nodes as it can have"));
  }
  const NodeId id(position);
  nodes_->reserve_one();
  const std::unique_lock lock(mutex_);
  note_function(id, node);
  node_of_name_.emplace(node.name, id);
  nodes_->append(std::move(node));
  if (num_drafts_ == 0) nodes_->publish();
  return id;
}

/// With the mutex held. If the node is then not appended, the next node takes its id and is noted again, so the note
/// of one node never describes another.
void GraphStore::note_function(NodeId id, const Node& node) {
  switch (node.op->role) {
    case OpRole::function:
      functions_[id] = {};
      break;
    case OpRole::argument: {
      Function& of = functions_.at(node.function);
      const std::size_t number = argument_number(node);
      // Numbers come in about their order; a large number does not take memory for all numbers below it.
      if (constexpr std::size_t slack = 256; number > slack + 8 * of.arguments.size()) {
        throw_error(Status::invalid_argument(
            str_cat("argument ", number, " of a function that has ", of.arguments.size(), " so far")));
      }
      if (of.arguments.size() <= number) of.arguments.resize(number + 1);
      of.arguments[number] = id;
      break;
    }
    case OpRole::results:
      functions_.at(node.function).results = id;
      break;
    case OpRole::next_iteration:
      if (const NodeId merge = node.inputs[1].node; (*nodes_)[merge.position()].op->role == OpRole::merge) {
        next_iterations_[merge].push_back(id);
        break;
      }
      throw_error(
          Status::invalid_argument(str_cat("'", (*nodes_)[node.inputs[1].node.position()].name, "' is no Merge")));
    default:
      break;
  }
}

bool GraphStore::is_inside(NodeId function, NodeId of) const noexcept {
  if (!of.is_valid()) return true;
  for (; function.is_valid(); function = (*nodes_)[function.position()].function) {
    if (function == of) return true;
  }
  return false;
}

std::optional<GraphStore::Function> GraphStore::function(NodeId begin) const {
  const std::shared_lock lock(mutex_);
  const auto found = functions_.find(begin);
  return found == functions_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<NodeId> GraphStore::next_iterations(NodeId merge) const {
  const std::shared_lock lock(mutex_);
  const auto found = next_iterations_.find(merge);
  if (found == next_iterations_.end()) return {};
  std::vector<NodeId> nodes = found->second;
  drop_drafted(nodes);
  // If an id was noted and its node was not appended, another node has the id.
  std::erase_if(nodes, [&](NodeId id) {
    const Node& node = (*nodes_)[id.position()];
    return node.op->role != OpRole::next_iteration || node.inputs[1].node != merge;
  });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void GraphStore::add_to_collection(std::string_view collection, NodeId node) {
  const std::unique_lock lock(mutex_);
  const auto found = collections_.find(collection);
  if (found != collections_.end()) return found->second.push_back(node);
  collections_.emplace(std::string(collection), std::vector<NodeId>{node});
}

std::vector<NodeId> GraphStore::take_from_collection(std::string_view collection, std::size_t first) {
  const std::unique_lock lock(mutex_);
  const auto found = collections_.find(collection);
  if (found == collections_.end() || found->second.size() <= first) return {};
  const auto begin = found->second.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<NodeId> taken(begin, found->second.end());
  found->second.erase(begin, found->second.end());
  return taken;
}

void GraphStore::on_drop(UniqueFunction<void()> undo) {
  const std::unique_lock lock(mutex_);
  if (num_drafts_ > 0) undo_.emplace_back(nodes_->num_appended(), std::move(undo));
}

std::uint64_t GraphStore::count_random_ops(std::uint64_t count) {
  const std::unique_lock lock(mutex_);
  return random_ops_ += count;
}

NodeId GraphStore::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = node_of_name_.find(name);
  if (found == node_of_name_.end()) return {};
  const bool is_seen = found->second.position() < size() || drafting_ == std::this_thread::get_id();
  return is_seen ? found->second : NodeId();
}

std::vector<NodeId> GraphStore::collection(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto found = collections_.find(name);
  if (found == collections_.end()) return {};
  std::vector<NodeId> nodes = found->second;
  drop_drafted(nodes);
  return nodes;
}

std::vector<std::pair<std::string, std::vector<NodeId>>> GraphStore::collections() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, std::vector<NodeId>>> all(collections_.begin(), collections_.end());
  for (auto& [name, nodes] : all) drop_drafted(nodes);
  std::erase_if(all, [](const auto& each) { return each.second.empty(); });
  return all;
}

/// Only the thread that builds a draft sees the nodes of the draft. With the mutex held.
void GraphStore::drop_drafted(std::vector<NodeId>& nodes) const {
  if (drafting_ == std::this_thread::get_id()) return;
  std::erase_if(nodes, [&](NodeId id) { return id.position() >= size(); });
}

GraphStore::Function detail::require_function(const GraphStore& graph, NodeId begin, const std::string& name) {
  std::optional<GraphStore::Function> function = begin.is_valid() ? graph.function(begin) : std::nullopt;
  if (!function) throw_error(Status::invalid_argument(str_cat("the graph has no function '", name, "'")));
  if (!function->results.is_valid()) {
    throw_error(Status::invalid_argument(str_cat("the body of function '", name, "' is not finished")));
  }
  for (std::size_t i = 0; i < function->arguments.size(); ++i) {
    if (function->arguments[i].is_valid()) continue;
    throw_error(Status::invalid_argument(str_cat("function '", name, "' has no argument ", i)));
  }
  return *std::move(function);
}

std::vector<Endpoint> detail::captured_edges(const GraphStore& graph, const Node& call, bool builds) {
  std::vector<Endpoint> edges;
  if (call.op->role != OpRole::call) return edges;
  std::string text;
  for (const AttrField& field : call.op->attr_fields) {
    if (field.name == "captured") text = std::get<std::string>(attr_of(call, field));
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t colon = one.rfind(':');
    std::int32_t output = -1;
    if (colon != std::string_view::npos) {
      const std::string_view digits = one.substr(colon + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), output);
      if (error != std::errc() || end != digits.data() + digits.size()) output = -1;
    }
    const std::string_view name = one.substr(0, colon);
    const NodeId id = builds ? graph.find_appended(name) : graph.find(name);
    if (!id.is_valid() || output < 0 || static_cast<std::size_t>(output) >= graph.node(id).outputs.size()) {
      throw_error(Status::invalid_argument(str_cat("the graph has no edge '", one, "' for a capture to stand for")));
    }
    edges.push_back({id, output});
  }
  return edges;
}

std::string detail::captured_text(const GraphStore& graph, std::span<const Endpoint> edges) {
  std::string text;
  for (const Endpoint edge : edges) {
    if (!text.empty()) text += ';';
    text += str_cat(graph.node(edge.node).name, ":", edge.index);
  }
  return text;
}

void GraphStore::drop_functions(NodeId first) noexcept {
  functions_.erase(functions_.lower_bound(first), functions_.end());
  for (auto& [merge, nodes] : next_iterations_) std::erase_if(nodes, [&](NodeId id) { return id >= first; });
  std::erase_if(next_iterations_, [](const auto& each) { return each.second.empty(); });
  for (auto& [begin, function] : functions_) {
    for (NodeId& argument : function.arguments) {
      if (argument >= first) argument = NodeId();
    }
    if (function.results.is_valid() && function.results >= first) function.results = NodeId();
  }
}

// ---- drafts ----

GraphStore::Draft::Draft(GraphStore& graph) noexcept : graph_(graph), first_(graph.nodes_->num_appended()) {
  if (graph_.num_drafts_++ == 0) graph_.drafting_ = std::this_thread::get_id();
}

GraphStore::Draft::~Draft() {
  const std::unique_lock lock(graph_.mutex_);
  --graph_.num_drafts_;
  if (!is_published_) {
    for (std::size_t i = first_; i < graph_.nodes_->num_appended(); ++i) {
      graph_.node_of_name_.erase((*graph_.nodes_)[i].name);
    }
    graph_.drop_functions(NodeId(first_));
    for (auto& [name, nodes] : graph_.collections_)
      std::erase_if(nodes, [&](NodeId id) { return id >= NodeId(first_); });
    std::erase_if(graph_.collections_, [](const auto& collection) { return collection.second.empty(); });
    graph_.nodes_->drop_from(first_);
    while (!graph_.undo_.empty() && graph_.undo_.back().first > first_) {
      graph_.undo_.back().second();
      graph_.undo_.pop_back();
    }
  }
  if (graph_.num_drafts_ == 0) {
    graph_.drafting_ = std::thread::id();
    graph_.undo_.clear();
    graph_.nodes_->publish();
  }
}

}  // namespace dflow
