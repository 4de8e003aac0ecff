#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/place.hpp>

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

namespace dflow {

Placement::Placement(std::vector<DeviceInfo> devices, std::vector<KernelTables> kernels, bool soft,
                     std::optional<OpTable> ops)
    : devices_(std::move(devices)), kernels_(std::move(kernels)), soft_(soft), ops_(ops) {
  for (const DeviceInfo& device : devices_) names_.push_back(DeviceName::parse(device.name));
}

// ---- sets of devices ----

// Each table gets an entry only when its value is known, so that running out of memory leaves none half made.

Placement::SetId Placement::intern(const Set& set) {
  if (const auto found = set_ids_.find(set); found != set_ids_.end()) return found->second;
  const auto id = static_cast<SetId>(sets_.size());
  Ends ends;
  for (std::size_t d = 0; d < set.size(); ++d) {
    if (!set[d]) continue;
    ends.last = static_cast<std::int32_t>(d);
    if (ends.first < 0) ends.first = ends.last;
  }
  sets_.push_back(set);
  try {
    ends_.push_back(ends);
    set_ids_.emplace(set, id);
  } catch (...) {
    sets_.pop_back();
    ends_.resize(sets_.size());
    throw;
  }
  return id;
}

Placement::SetId Placement::intersect(SetId a, SetId b) {
  if (a == b) return a;
  const std::pair<SetId, SetId> key{std::min(a, b), std::max(a, b)};
  if (const auto found = intersections_.find(key); found != intersections_.end()) return found->second;
  Set both = sets_[static_cast<std::size_t>(a)];
  for (std::size_t d = 0; d < both.size(); ++d) both[d] = both[d] && sets_[static_cast<std::size_t>(b)][d];
  const SetId id = intern(both);
  intersections_.emplace(key, id);
  return id;
}

bool Placement::is_empty(SetId set) const { return ends_[static_cast<std::size_t>(set)].first < 0; }

bool Placement::contains(SetId set, std::int32_t device) const {
  return device >= 0 && sets_[static_cast<std::size_t>(set)][static_cast<std::size_t>(device)];
}

const Placement::Constraint& Placement::constraint_of(const std::string& device) {
  if (const auto found = constraints_.find(device); found != constraints_.end()) return found->second;
  const DeviceName wanted = device.empty() ? DeviceName() : DeviceName::parse(device);
  DeviceName same_task = wanted;
  same_task.type.reset();
  same_task.id.reset();
  Set exact(devices_.size()), relaxed(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    exact[d] = wanted.matches(names_[d]);
    relaxed[d] = same_task.matches(names_[d]);
  }
  const Constraint constraint{intern(exact), intern(relaxed)};
  return constraints_.emplace(device, constraint).first->second;
}

std::size_t Placement::TypedOpHash::operator()(const TypedOp& of) const noexcept {
  auto hash = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(of.op));
  for (std::size_t t = 0; t < of.types.size; ++t) hash = hash * 31 + static_cast<std::uint64_t>(of.types[t]);
  return static_cast<std::size_t>(hash * 0x9e3779b97f4a7c15u >> 16);
}

Placement::SetId Placement::with_kernel(const Node& node) {
  const TypedOp key{node.op, node.types};
  if (const auto found = kernel_sets_.find(key); found != kernel_sets_.end()) return found->second;
  Set set(devices_.size(), true);
  for (std::size_t d = 0; node.op->needs_kernel && d < devices_.size(); ++d) {
    const KernelEntry* entry = kernels_[d].find(devices_[d].type, node.op->name);
    set[d] = entry != nullptr && entry->supports_types(node.types);
  }
  const SetId id = intern(set);
  kernel_sets_.emplace(key, id);
  return id;
}

// ---- groups ----

NodeId Placement::root(NodeId node) {
  while (parent_[node] != node) {
    NodeId& up = parent_[node];
    up = parent_[up];
    node = up;
  }
  return node;
}

bool Placement::is_nowhere(const Node& node) {
  const bool is_value = node.op->role == OpRole::constant || node.op->role == OpRole::placeholder;
  return is_value && node.device.empty() && !node.colocated_with.is_valid();
}

namespace detail {

/// A device of a type that the session has none of.
std::string how_to_have(std::string_view device, std::span<const DeviceInfo> devices) {
  const StatusOr<DeviceName> wanted = DeviceName::try_parse(device);
  if (!wanted.ok() || !wanted->type) return {};
  for (const DeviceInfo& each : devices) {
    if (each.type == *wanted->type) return {};
  }
  return str_cat(*wanted->type == "GPU"
                     ? "; NVIDIA GPUs are devices of the component dflow::cuda (df::cuda_devices()), "
                       "which a session is given"
                     : "",
                 "; with soft placement the node would run on a device of another type");
}

}  // namespace detail

void Placement::fail(NodeId id, const Node& node, Status status) {
  errors_.try_emplace(id, status.with_node(node.op->name, node.name).with_location(node.where));
}

std::string Placement::device_list() const {
  std::string list;
  for (const DeviceInfo& device : devices_) list += (list.empty() ? "" : ", ") + device.name;
  return list;
}

std::string Placement::why_no_kernel(const Node& node, SetId allowed) const {
  if (ops_ && ops_->find(node.op->name) == nullptr) {
    return str_cat("op ", node.op->name,
                   " is not in the session's table of ops; make the session with a list that has it: {.ops = "
                   "df::standard_ops + df::ops<...>}");
  }
  std::string types, devices, causes;
  for (std::size_t t = 0; t < node.types.size; ++t) types += str_cat(t == 0 ? " of " : ", ", dtype_name(node.types[t]));
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!contains(allowed, static_cast<std::int32_t>(d))) continue;
    devices += str_cat(devices.empty() ? "" : ", ", devices_[d].name);
    const std::string& device_type = devices_[d].type;
    const bool has_row = kernels_[d].find(device_type, node.op->name) != nullptr;
    const std::string cause = has_row ? str_cat("its ", device_type, " kernel is for other element types")
                                      : str_cat("the session's tables have no ", device_type, " kernel of it");
    if (causes.find(cause) == std::string::npos) causes += str_cat(causes.empty() ? "" : ", ", cause);
  }
  const std::string constraint = node.device.empty() ? "" : str_cat("what '", node.device, "' allows, ");
  return str_cat("op ", node.op->name, types, " has no kernel on ", constraint, devices, ": ", causes);
}

Placement::SetId Placement::allowed_for(NodeId id, const Node& node) {
  const Constraint& constraint = constraint_of(node.device);
  const SetId runnable = with_kernel(node);
  const SetId exact = intersect(constraint.exact, runnable);
  if (!is_empty(exact)) return exact;
  if (soft_) {
    const SetId relaxed = intersect(constraint.relaxed, runnable);
    if (!is_empty(relaxed)) return relaxed;
  }
  if (is_empty(soft_ ? constraint.relaxed : constraint.exact)) {
    fail(id, node,
         Status::invalid_argument(str_cat("no device of the session matches '", node.device, "'; it has ",
                                          device_list(), soft_ ? "" : detail::how_to_have(node.device, devices_))));
  } else {
    fail(id, node, Status::not_found(why_no_kernel(node, soft_ ? constraint.relaxed : constraint.exact)));
  }
  return intern(Set(devices_.size(), true));
}

/// A group that has its device keeps it. Groups that do not agree are not joined; with soft placement a group without a
/// device yet goes where the other one is.
void Placement::join(NodeId id, const Node& node, NodeId other, const GraphStore& graph) {
  NodeId mine = root(id), theirs = root(other);
  if (mine == theirs) return;
  if (mine < theirs) std::swap(mine, theirs);  // the older one stays the root
  Group& kept = groups_[theirs];
  const Group joined = groups_[mine];
  const std::int32_t device = kept.device >= 0 ? kept.device : joined.device;
  const SetId both = intersect(kept.allowed, joined.allowed);
  bool agrees = false, may_yield = soft_;
  if (kept.device >= 0 && joined.device >= 0) {
    agrees = kept.device == joined.device;
    may_yield = false;
  } else {
    agrees = device >= 0 ? contains(kept.device >= 0 ? joined.allowed : kept.allowed, device) : !is_empty(both);
  }
  if (!agrees && !may_yield) {
    if (errors_.contains(id)) return;
    return fail(id, node,
                Status::invalid_argument(str_cat(node.device.empty() ? "its" : str_cat("'", node.device, "' and its"),
                                                 " kernels contradict the device of '", graph.node(theirs).name,
                                                 "', with which it must be placed")));
  }
  parent_[mine] = theirs;
  if (!is_empty(both)) kept.allowed = both;
  kept.device = device;
}

/// In a body the function's device, else the first producer's, if that is allowed, else the first allowed.
std::int32_t Placement::choose(const Group& group, const Node& node, const GraphStore& graph) {
  const auto [first, last] = ends_[static_cast<std::size_t>(group.allowed)];
  if (first == last) return first;
  if (node.function.is_valid()) {
    const std::int32_t functions = groups_[root(node.function)].device;
    if (contains(group.allowed, functions)) return functions;
  }
  for (const Endpoint input : node.inputs) {
    const NodeId producer = producer_of(input, graph);
    if (is_nowhere(graph.node(producer))) continue;
    const std::int32_t producers = groups_[root(producer)].device;
    if (contains(group.allowed, producers)) return producers;
    break;
  }
  return first;
}

/// A collective's result is where the value is that it was made for.
NodeId Placement::producer_of(Endpoint edge, const GraphStore& graph) {
  const Node* node = &graph.node(edge.node);
  while (node->op->role == OpRole::collective && !node->inputs.empty()) {
    edge = node->inputs[std::min(static_cast<std::size_t>(edge.index), node->inputs.size() - 1)];
    node = &graph.node(edge.node);
  }
  return edge.node;
}

bool Placement::is_handle_edge(Endpoint edge, const GraphStore& graph) {
  return is_handle(graph.node(edge.node).outputs[static_cast<std::size_t>(edge.index)].dtype);
}

/// A node of a body is where the calls of the body are, unless the node has a device of its own or a handle's.
bool Placement::follows_function(const Node& node, const GraphStore& graph) {
  if (!node.function.is_valid() || is_nowhere(node)) return false;
  const OpRole role = node.op->role;
  if (role == OpRole::argument || role == OpRole::results) return true;
  if (role == OpRole::kept_value || !node.device.empty() || node.colocated_with.is_valid()) return false;
  const std::size_t num_given = calls_functions(role) ? num_arguments(node, graph) : node.inputs.size();
  return std::none_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(num_given),
                      [&](Endpoint input) { return is_handle_edge(input, graph); });
}

/// The number of a call's inputs that are its functions' arguments, with the inputs that say which body to run; all
/// inputs if a function is not there yet.
std::size_t Placement::num_arguments(const Node& call, const GraphStore& graph) {
  std::size_t most = 0;
  for (const std::string& name : called_functions(call)) {
    const NodeId begin = graph.find(name);
    const auto function = begin.is_valid() ? graph.function(begin) : std::nullopt;
    if (!function) return call.inputs.size();
    most = std::max(most, function->arguments.size());
  }
  return std::min(most + (call.op->role == OpRole::branch ? 1 : 0), call.inputs.size());
}

/// The node of a body that a kept value is of, or the call where it is none's; none for other nodes.
NodeId Placement::kept_beside(const Node& node, const GraphStore& graph) {
  if (node.op->role != OpRole::kept_value || node.inputs.empty()) return {};
  const NodeId of_body = graph.find(std::get<std::string>(attr_of(node, node.op->attr_fields[0])));
  return of_body.is_valid() && !is_nowhere(graph.node(of_body)) ? of_body : node.inputs[0].node;
}

void Placement::extend(const GraphStore& graph) {
  const std::size_t count = graph.size();
  {
    const std::shared_lock lock(mutex_);
    if (parent_.size() >= count) return;
  }
  const std::unique_lock lock(mutex_);
  const std::size_t placed = parent_.size();
  if (placed >= count) return;
  try {
    place_all({NodeId(placed), NodeId(count)}, graph);
  } catch (...) {
    // Out of memory half way. Groups of older nodes may have been narrowed by the new ones, which will narrow them
    // again.
    parent_.resize(placed);
    groups_.resize(placed);
    std::erase_if(errors_, [&](const auto& error) { return error.first.position() >= placed; });
    throw;
  }
}

void Placement::place_all(IndexRange<NodeId> added, const GraphStore& graph) {
  std::vector<std::pair<NodeId, NodeId>> later;  // joins over the back edges of loops
  for (const NodeId id : added) {
    const Node& node = graph.node(id);
    parent_.push_back(id);
    // A kept value is where it was made; the scope of the gradient does not matter.
    const bool is_kept = node.op->role == OpRole::kept_value;
    groups_.push_back({is_kept ? intern(Set(devices_.size(), true)) : allowed_for(id, node), -1});
    const auto join_with = [&](NodeId other) {
      if (other > id) return later.emplace_back(id, other), void();
      join(id, node, other, graph);
    };
    if (node.colocated_with.is_valid() && !is_kept) join_with(node.colocated_with);
    if (follows_function(node, graph)) join_with(node.function);
    std::size_t num_given = node.inputs.size();
    if (calls_functions(node.op->role)) {
      num_given = num_arguments(node, graph);
      for (const std::string& name : called_functions(node)) {
        if (const NodeId begin = graph.find(name); begin.is_valid()) join_with(begin);
      }
    }
    if (const NodeId kept = kept_beside(node, graph); kept.is_valid()) join_with(kept);
    // A handle cannot leave its device: its users are where the state is. An edge that a call takes from around it
    // goes to its readers in the body.
    for (std::size_t i = 0; i < num_given; ++i) {
      if (is_handle_edge(node.inputs[i], graph)) join_with(node.inputs[i].node);
    }
  }
  for (const auto& [id, other] : later) join(id, graph.node(id), other, graph);
  for (const NodeId id : added) {
    Group& group = groups_[root(id)];
    if (group.device < 0) group.device = choose(group, graph.node(id), graph);
  }
  // From here on each node knows its group's root, so that readers need not look for it.
  for (const NodeId id : added) parent_[id] = root(id);
}

std::size_t Placement::Reader::device_of(NodeId node) const {
  const auto& [parent, groups, errors] = std::tie(placement_.parent_, placement_.groups_, placement_.errors_);
  if (!errors.empty()) {
    if (const auto found = errors.find(node); found != errors.end()) throw_error(found->second);
  }
  NodeId at = node;
  while (parent[at] != at) at = parent[at];
  return static_cast<std::size_t>(groups[at].device);
}

std::string placement_text(const StepGraph& graph, std::span<const DeviceInfo> devices) {
  std::string text;
  for (const StepNode& node : graph.nodes) {
    const std::string& device = devices[static_cast<std::size_t>(node.placed_on)].name;
    text += str_cat(node->name, ": ", node.op->name, " -> ", device, "\n");
  }
  return text;
}

}  // namespace dflow
