#pragma once

#include <dflow/base/position_table.hpp>
#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/split_calls.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

/// Something brought to a place: an output of a node by its number, or a control edge or constant of the node.
struct BroughtTo {
  enum What : std::int32_t { control_edge = -1, constant_copy = -2, constant_wait = -3 };
  StepNodeId node;
  std::int32_t what = 0;
  std::size_t device = 0;
  std::size_t memory = 0;
  friend bool operator==(const BroughtTo&, const BroughtTo&) = default;
};

/// The nodes that bring it there.
class BroughtNodes {
 public:
  /// Its position, and whether it is new. A new entry has no node until one is set.
  std::pair<std::size_t, bool> add(const BroughtTo& to) {
    const auto end = static_cast<std::int32_t>(brought_.size());
    const std::int32_t found = table_.find_or_insert(hash(to), end, [&](std::int32_t i) { return is_at(i, to); });
    if (found < 0) brought_.emplace_back(to, StepNodeId());
    return {static_cast<std::size_t>(found < 0 ? end : found), found < 0};
  }
  StepNodeId& at(std::size_t position) { return brought_[position].second; }
  /// Null if nothing was brought there.
  const StepNodeId* find(const BroughtTo& to) const {
    const std::int32_t found = table_.find(hash(to), [&](std::int32_t i) { return is_at(i, to); });
    return found < 0 ? nullptr : &brought_[static_cast<std::size_t>(found)].second;
  }

 private:
  static std::uint64_t hash(const BroughtTo& to) {
    return mix_hash(mix_hash(EndpointHash{}(StepEndpoint{to.node, to.what}), to.device), to.memory);
  }
  bool is_at(std::int32_t i, const BroughtTo& to) const { return brought_[static_cast<std::size_t>(i)].first == to; }

  std::vector<std::pair<BroughtTo, StepNodeId>> brought_;
  PositionTable table_;
};

/// Walks a placed graph in topological order and deals its nodes out to partitions.
class Partitioner {
 public:
  Partitioner(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels,
              const DeviceInfo& client)
      : graph_(std::move(graph)),
        devices_(devices),
        kernels_(kernels),
        client_(client),
        parts_(devices.size()),
        new_id_(graph_.nodes.size()),
        host_outputs_(graph_.nodes.size()),
        feeds_(graph_.feeds, graph_.nodes.size()),
        has_feed_(graph_.nodes.size()),
        client_memory_(number_of(host_memory_of(client))) {
    for (std::size_t d = 0; d < devices.size(); ++d) {
      parts_[d].device = d;
      memories_.push_back({number_of(memory_of(devices[d])), number_of(host_memory_of(devices[d]))});
      parts_[d].graph.graph = graph_.graph;
      parts_[d].graph.made = graph_.made;
      parts_[d].graph.calls = graph_.calls;
    }
    for (const StepEndpoint feed : graph_.feeds) has_feed_[feed.node] = true;
  }

  Partitions partition() {
    add_nodes();
    for (std::size_t f = 0; f < graph_.fetches.size(); ++f) add_fetch(f);
    add_targets();
    for (Partition& part : parts_) {
      if (!part.graph.nodes.empty()) result_.parts.push_back(std::move(part));
    }
    return std::move(result_);
  }

  std::vector<StepGraph> partition_body(const BodyEdges& edges) {
    body_edges_ = &edges;
    for (std::size_t f = 0; f < graph_.feeds.size(); ++f) {
      for (const std::size_t to : edges.feeds_at[f]) give_feed(f, to);
    }
    add_nodes();
    for (std::size_t f = 0; f < graph_.fetches.size(); ++f) {
      const StepEndpoint edge = graph_.fetches[f];
      for (const std::size_t to : edges.fetches_at[f]) {
        const Place wanted = edges.asks ? on_host(to) : place_at(to, graph_.output(edge).dtype, {}, 0);
        const StepEndpoint there = bring(edge, wanted);
        parts_[to].graph.fetches.push_back(there);
      }
    }
    add_targets();
    for (std::size_t d = 1; edges.first_waits && d < edges.devices.size(); ++d) await_part(edges.devices[d]);
    std::vector<StepGraph> graphs;
    graphs.reserve(edges.devices.size());
    for (const std::size_t to : edges.devices) graphs.push_back(std::move(parts_[to].graph));
    return graphs;
  }

 private:
  /// A memory by its number among the step's memories.
  using MemoryNumber = std::size_t;
  struct Memories {
    MemoryNumber own = 0;
    MemoryNumber host = 0;
  };
  /// The place of a tensor: a device, or the client, and a memory there.
  struct Place {
    std::size_t device = 0;
    MemoryNumber memory = 0;
  };
  /// The nodes on another device that a node waits for, and the Recv that says that all of them have run.
  struct JoinedControls {
    std::vector<StepNodeId> sources;
    std::size_t to = 0;
    StepNodeId node;  ///< none: one by one
  };
  /// The sources that have crossed to a device in joined lists.
  struct JoinedTo {
    std::unordered_set<StepNodeId> sources;
    std::size_t num_lists = 0;
  };
  /// Fewer control edges from one device cross one by one, each for all its readers.
  static constexpr std::size_t min_joined = 4;
  static constexpr std::size_t client_place = static_cast<std::size_t>(-1);

  std::size_t device(StepNodeId id) const { return static_cast<std::size_t>(graph_.node(id).placed_on); }
  const DeviceInfo& info(std::size_t device) const { return device == client_place ? client_ : devices_[device]; }
  Partition& part_of(StepNodeId id) { return parts_[device(id)]; }
  bool is_constant(StepNodeId id) const { return graph_.node(id).op->role == OpRole::constant && !has_feed_[id]; }

  // ---- memories ----

  MemoryNumber number_of(const MemoryId& memory) {
    return memory_numbers_.try_emplace(memory, memory_numbers_.size()).first->second;
  }
  Place on_host(std::size_t device) const {
    return {device, device == client_place ? client_memory_ : memories_[device].host};
  }
  /// A tensor's place at a device: in host memory if the op wants it there, or if it is an object of the host.
  Place place_at(std::size_t device, DType dtype, const std::vector<bool>& host_edges, std::size_t edge) const {
    if (is_host_object(dtype) || (!host_edges.empty() && host_edges[edge])) return on_host(device);
    return {device, memories_[device].own};
  }
  bool is_host(Place place) const { return place.memory == on_host(place.device).memory; }
  bool has_own_memory(std::size_t device) const {
    return device != client_place && memories_[device].own != memories_[device].host;
  }
  const KernelEntry* entry_of(const StepNode& node, std::size_t device) const {
    return has_own_memory(device) ? kernels_[device].find(info(device).type, node.op->name) : nullptr;
  }
  Place place_of(StepEndpoint edge) const {
    return place_at(device(edge.node), graph_.output(edge).dtype, host_outputs_[edge.node],
                    static_cast<std::size_t>(edge.index));
  }

  StepNodeId append(std::size_t device, Node made, std::span<const StepEndpoint> inputs = {},
                    std::span<const StepNodeId> controls = {}) {
    return parts_[device].graph.append(std::move(made), static_cast<std::int32_t>(device), inputs, controls);
  }

  void add_nodes() {
    for (const StepNodeId id : graph_.nodes.indices()) {
      const StepNode& node = graph_.node(id);
      if (!node.is_fed_only && node.op->role != OpRole::constant) add_node(id);
    }
  }

  void add_targets() {
    for (const StepNodeId target : graph_.targets) {
      if (new_id_[target].is_valid()) part_of(target).graph.targets.push_back(new_id_[target]);
    }
  }

  void add_node(StepNodeId id) {
    const std::size_t here = device(id);
    const StepNode& node = graph_.node(id);
    std::vector<bool> host_inputs;
    if (const KernelEntry* entry = entry_of(node, here)) {
      host_inputs = host_inputs_of(*node, *entry);
      host_outputs_[id] = host_outputs_of(*node, *entry);
    } else if (const StepCall* call = graph_.call_of(node); call != nullptr && has_own_memory(here)) {
      // The inputs that say which body to run are in host memory, and so is the number of iterations.
      host_inputs.resize(node.num_inputs);
      std::fill_n(host_inputs.begin(), call->num_leading, true);
      std::vector<bool>& host_outputs = host_outputs_[id];
      host_outputs.resize(node->outputs.size());
      for (std::size_t k = 0; k < call->kept.size(); ++k) {
        if (call->kept[k].result < 0) host_outputs[host_outputs.size() - call->kept.size() + k] = true;
      }
    }
    inputs_.clear();
    for (const StepEndpoint input : graph_.inputs_of(node)) {
      inputs_.push_back(bring(input, place_at(here, graph_.output(input).dtype, host_inputs, inputs_.size())));
    }
    new_id_[id] = parts_[here].graph.append(node, inputs_, bring_controls(id, here));
  }

  // ---- control edges ----

  /// A constant that is in the step for its value, but was built after other nodes.
  bool is_late_constant(StepNodeId id) const {
    return graph_.node(id).op->role == OpRole::constant && graph_.node(id).num_controls != 0;
  }

  std::vector<StepNodeId> bring_controls(StepNodeId id, std::size_t to) {
    std::vector<StepNodeId> controls;
    std::vector<std::vector<StepNodeId>> crossing;  // by device
    for (const StepNodeId control : graph_.controls_of(graph_.node(id))) {
      const StepNode& source = graph_.node(control);
      if (is_late_constant(control)) {
        controls.push_back(wait_for_constant(control, to));
      } else if (source.is_fed_only || source.op->role == OpRole::constant) {
        continue;  // it is there from the beginning
      } else if (device(control) == to) {
        controls.push_back(new_id_[control]);
      } else {
        crossing.resize(devices_.size());
        crossing[device(control)].push_back(control);
      }
    }
    for (std::vector<StepNodeId>& sources : crossing) {
      const StepNodeId joined = sources.size() < min_joined ? StepNodeId() : bring_joined_controls(id, sources, to);
      if (joined.is_valid()) {
        controls.push_back(joined);
        continue;
      }
      for (const StepNodeId source : sources) controls.push_back(bring_control(source, to));
    }
    return controls;
  }

  /// One Send and Recv for all nodes that a node waits for on another device, and for other readers with the same
  /// list. None if there are many lists of few nodes: they would need more Sends than one for each node.
  StepNodeId bring_joined_controls(StepNodeId reader_id, const std::vector<StepNodeId>& sources, std::size_t to) {
    std::uint64_t hash = to;
    for (const StepNodeId source : sources) hash = mix_hash(hash, source.position());
    const auto end = static_cast<std::int32_t>(joined_.size());
    const std::int32_t found = joined_table_.find_or_insert(hash, end, [&](std::int32_t i) {
      const JoinedControls& joined = joined_[static_cast<std::size_t>(i)];
      return joined.to == to && joined.sources == sources;
    });
    if (found >= 0) return joined_[static_cast<std::size_t>(found)].node;
    JoinedTo& there = joined_to_[to];
    there.sources.insert(sources.begin(), sources.end());
    if (there.num_lists >= there.sources.size() / min_joined) {
      joined_.push_back({sources, to, {}});
      return {};
    }
    ++there.num_lists;
    const std::size_t from = device(sources.front());
    std::vector<StepNodeId> after;
    after.reserve(sources.size());
    for (const StepNodeId source : sources) after.push_back(new_id_[source]);
    const StepNodeId node =
        send_token(*graph_.node(reader_id), "^^", str_cat("/_joined_", from, "_", to), after, from, to);
    joined_.push_back({sources, to, node});
    return node;
  }

  /// An empty constant that waits for the nodes that a constant was built after. Constants may wait for one another
  /// in long chains, so the first of a chain comes first.
  StepNodeId wait_for_constant(StepNodeId id, std::size_t to) {
    const auto place_of_wait = [to](StepNodeId constant) {
      return BroughtTo{constant, BroughtTo::constant_wait, to, 0};
    };
    std::vector<StepNodeId> open{id};
    while (!open.empty()) {
      const StepNodeId next = open.back();
      const std::size_t before = open.size();
      for (const StepNodeId control : graph_.controls_of(graph_.node(next))) {
        if (is_late_constant(control) && brought_.find(place_of_wait(control)) == nullptr) open.push_back(control);
      }
      if (open.size() != before) continue;
      open.pop_back();
      if (brought_.find(place_of_wait(next)) != nullptr) continue;
      Node wait = empty_constant(*graph_.node(next), "/_wait");
      const StepNodeId made = append(to, std::move(wait), {}, bring_controls(next, to));
      brought_.at(brought_.add(place_of_wait(next)).first) = made;
    }
    return *brought_.find(place_of_wait(id));
  }

  static Node empty_constant(const Node& source, std::string_view suffix) {
    Node empty;
    empty.op = &op_def<Const>;
    empty.name = str_cat(source.name, suffix);
    empty.types = type_args<float>();
    empty.attrs = reflect::share(Const::Attrs{Tensor<float>({0}, {})});
    empty.outputs = {{DType::float32, PartialShape({0})}};
    empty.where = source.where;
    return empty;
  }

  /// A control edge travels as a Send and Recv of an empty tensor that waits for its source.
  StepNodeId bring_control(StepNodeId source_id, std::size_t to) {
    const auto [place, is_new] = brought_.add({source_id, BroughtTo::control_edge, to, 0});
    if (!is_new) return brought_.at(place);
    const Node& source = *graph_.node(source_id);
    return brought_.at(place) =
               send_token(source, "^", str_cat("/_token_", to), {&new_id_[source_id], 1}, device(source_id), to);
  }

  /// Sends an empty tensor after some nodes, named after the user's node `of`, which may have namesakes on other
  /// devices: the parts of a call. `kind` tells from tokens that are sent for another reason. Returns its Recv.
  StepNodeId send_token(const Node& of, std::string_view kind, std::string_view suffix,
                        std::span<const StepNodeId> after, std::size_t from, std::size_t to) {
    const StepNodeId token = append(from, empty_constant(of, suffix));
    const std::string name = str_cat(kind, of.name);
    const OutputInfo empty{DType::float32, PartialShape({0})};
    add_send({from, memories_[from].own}, to, name, {token, 0}, of, empty, after);
    return add_recv(from, {to, memories_[to].own}, name, of, empty);
  }

  // ---- tensors ----

  /// The edge as a reader at that place sees it: itself, a copy of a constant, a feed, or the output of a Recv.
  StepEndpoint bring(StepEndpoint edge, Place wanted) {
    if (is_constant(edge.node)) return {copy_constant(edge.node, wanted.device), 0};
    Place from;
    StepEndpoint there;
    if (const auto feed = find_feed(edge); !feed) {
      from = place_of(edge);
      there = {new_id_[edge.node], edge.index};
    } else if (body_edges_ == nullptr) {
      return {bring_feed(*feed, wanted), 0};
    } else {
      from = place_of_given(*feed, wanted.device);
      there = {given_.at({edge.node, from.device}), edge.index};
    }
    if (from.device == wanted.device && from.memory == wanted.memory) return there;
    const auto [place, is_new] = brought_.add({edge.node, edge.index, wanted.device, wanted.memory});
    if (!is_new) return {brought_.at(place), 0};
    const Node& source = *graph_.node(edge.node);
    const std::string name = tensor_name(edge, wanted);
    add_send(from, wanted.device, name, there, source, graph_.output(edge));
    return {brought_.at(place) = add_recv(from.device, wanted, name, source, graph_.output(edge)), 0};
  }

  /// The place of a body's feed: this device if the feed is given there, else the first device that gets it.
  Place place_of_given(std::size_t feed, std::size_t to) const {
    const std::vector<std::size_t>& at = body_edges_->feeds_at[feed];
    const std::size_t from = std::find(at.begin(), at.end(), to) != at.end() ? to : at.front();
    return place_at(from, graph_.output(graph_.feeds[feed]).dtype, {}, 0);
  }

  /// Makes the first part of a body wait for the end of another part. This is not needed if the first part waits for
  /// a tensor of the other part anyway and the other part changes no state.
  void await_part(std::size_t other) {
    const std::size_t first = body_edges_->devices.front();
    StepGraph& from = parts_[other].graph;
    const auto is_from_other = [&](const StepNode& node) {
      return node.op->role == OpRole::recv && node->attrs_as<Recv>().send_device == info(other).name;
    };
    const auto changes_state = [](const StepNode& node) {
      return !node.is_fed_only && node.op->is_stateful && node.op->role != OpRole::send &&
             node.op->role != OpRole::recv;
    };
    const StepGraph& to = parts_[first].graph;
    if (std::any_of(to.nodes.begin(), to.nodes.end(), is_from_other) &&
        std::none_of(from.nodes.begin(), from.nodes.end(), changes_state)) {
      return;
    }
    IndexedVector<StepNodeId, bool> is_last(from.nodes.size(), true);
    for (const StepNodeId id : from.nodes.indices()) {
      if (from.node(id).is_fed_only) is_last[id] = false;
      for (const StepEndpoint input : from.inputs_of(from.node(id))) is_last[input.node] = false;
      for (const StepNodeId control : from.controls_of(from.node(id))) is_last[control] = false;
    }
    std::vector<StepNodeId> last;
    for (const StepNodeId id : from.nodes.indices()) {
      if (is_last[id]) last.push_back(id);
    }
    Node end;
    end.name = "end_of_body";
    parts_[first].graph.targets.push_back(
        send_token(end, "^^^", str_cat("/_end_", other, "_", first), last, other, first));
  }

  void give_feed(std::size_t feed, std::size_t to) {
    const StepEndpoint edge = graph_.feeds[feed];
    StepNodeId& given = given_[{edge.node, to}];
    if (!given.is_valid()) {
      StepNode source = graph_.node(edge.node);
      source.placed_on = static_cast<std::int32_t>(to);
      source.call = -1;
      source.is_fed_only = true;
      given = parts_[to].graph.append(source, {}, {});
    }
    parts_[to].graph.feeds.push_back({given, edge.index});
  }

  /// The name by which one Send and one Recv know a tensor.
  std::string tensor_name(StepEndpoint edge, Place wanted) const {
    std::string name = graph_.node(edge.node)->name;
    if (edge.index != 0) name += str_cat(":", edge.index);
    if (has_own_memory(wanted.device) && is_host(wanted)) name += "@host";
    return name;
  }

  std::optional<std::size_t> find_feed(StepEndpoint edge) const {
    const std::int32_t found = has_feed_[edge.node] ? feeds_.find(edge) : -1;
    return found < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(found));
  }

  StepNodeId copy_constant(StepNodeId id, std::size_t to) {
    const auto [place, is_new] = brought_.add({id, BroughtTo::constant_copy, to, 0});
    if (!is_new) return brought_.at(place);
    StepNode copy = graph_.node(id);
    copy.placed_on = static_cast<std::int32_t>(to);
    const StepNodeId made = parts_[to].graph.append(copy, {}, bring_controls(id, to));
    return brought_.at(place) = made;
  }

  StepNodeId bring_feed(std::size_t feed, Place wanted) {
    const StepEndpoint edge = graph_.feeds[feed];
    const auto [place, is_new] = brought_.add({edge.node, edge.index, wanted.device, wanted.memory});
    if (!is_new) return brought_.at(place);
    const Node& source = *graph_.node(edge.node);
    if (wanted.memory != client_memory_) {
      const std::string name = tensor_name(edge, wanted);
      result_.sends.push_back({feed,
                               {client_.name, client_.incarnation, info(wanted.device).name, name},
                               DType::invalid,
                               is_pushed(client_place, wanted.device, graph_.output(edge))});
      return brought_.at(place) = add_recv(client_place, wanted, name, source, graph_.output(edge));
    }
    // Not named after the fed node, which may run here for other readers, and have several outputs fed.
    Node node;
    node.op = &op_def<Placeholder>;
    node.name = str_cat(source.name, "/_feed_", edge.index);
    node.types.push_back(graph_.output(edge).dtype);
    node.attrs = reflect::share(Placeholder::Attrs{graph_.output(edge).shape});
    node.outputs = {graph_.output(edge)};
    node.where = source.where;
    const StepNodeId id = append(wanted.device, std::move(node));
    parts_[wanted.device].graph.node(id).is_fed_only = true;
    parts_[wanted.device].graph.feeds.push_back({id, 0});
    parts_[wanted.device].feeds.push_back(feed);
    return brought_.at(place) = id;
  }

  void add_fetch(std::size_t f) {
    const StepEndpoint edge = graph_.fetches[f];
    if (const auto feed = find_feed(edge)) {
      result_.known.push_back({f, feed, {}});
      return;
    }
    if (is_constant(edge.node)) {
      result_.known.push_back({f, std::nullopt, constant_value(*graph_.node(edge.node))});
      return;
    }
    const Place from = place_of(edge);
    Partition& part = parts_[from.device];
    if (from.memory == client_memory_) {
      part.graph.fetches.push_back({new_id_[edge.node], edge.index});
      part.fetches.push_back(f);
      return;
    }
    const Node& source = *graph_.node(edge.node);
    const std::string name = str_cat(tensor_name(edge, on_host(client_place)), "#", f);
    const OutputInfo& fetched = graph_.output(edge);
    add_send(from, client_place, name, {new_id_[edge.node], edge.index}, source, fetched);
    result_.receives.push_back({f,
                                {info(from.device).name, info(from.device).incarnation, client_.name, name},
                                fetched.dtype,
                                is_pushed(from.device, client_place, fetched)});
  }

  static std::string node_name(const Node& source, std::string_view tensor, std::string_view what, std::size_t a,
                               std::size_t b) {
    const auto number = [](std::size_t place) {
      return place == client_place ? std::string("client") : str_cat(place);
    };
    // The tensor's own suffixes, in letters that a node's name may have.
    std::string suffix;
    for (const char c : tensor.substr(tensor.front() == '^' ? 1 : 0).substr(source.name.size())) {
      suffix += c == ':' || c == '@' || c == '#' ? '_' : c;
    }
    return str_cat(source.name, tensor.front() == '^' ? "/_control" : "/", what, number(a), "_", number(b), suffix);
  }

  /// Whether the tensor goes to another task, and is known to be small: it is then sent without a request.
  bool is_pushed(std::size_t from, std::size_t to, const OutputInfo& edge) const {
    const auto host_of = [&](std::size_t device) {
      return device == client_place ? client_memory_ : memories_[device].host;
    };
    return host_of(from) != host_of(to) && is_plain(edge.dtype) && edge.shape.is_fully_defined() &&
           static_cast<std::uint64_t>(edge.shape.to_shape().num_elements()) <= max_pushed_bytes / size_of(edge.dtype);
  }

  void add_send(Place from, std::size_t to, const std::string& tensor, StepEndpoint value, const Node& source,
                const OutputInfo& edge, std::span<const StepNodeId> after = {}) {
    Node node;
    node.op = &op_def<Send>;
    node.name = node_name(source, tensor, "_send_", from.device, to);
    node.types.push_back(edge.dtype);
    node.attrs =
        reflect::share(Send::Attrs{tensor, info(from.device).name, info(to).name, info(from.device).incarnation,
                                   is_host(from), is_pushed(from.device, to, edge)});
    node.where = source.where;
    parts_[from.device].graph.targets.push_back(append(from.device, std::move(node), {&value, 1}, after));
  }

  StepNodeId add_recv(std::size_t from, Place to, const std::string& tensor, const Node& source,
                      const OutputInfo& edge) {
    Node node;
    node.op = &op_def<Recv>;
    node.name = node_name(source, tensor, "_recv_", from, to.device);
    node.types.push_back(edge.dtype);
    node.attrs = reflect::share(Recv::Attrs{tensor, info(from).name, info(to.device).name, info(from).incarnation,
                                            edge.shape, is_host(to), is_pushed(from, to.device, edge)});
    node.outputs = {edge};
    node.where = source.where;
    return append(to.device, std::move(node));
  }

  StepGraph graph_;
  std::span<const DeviceInfo> devices_;
  const std::span<const KernelTables> kernels_;
  const DeviceInfo& client_;
  Partitions result_;
  std::vector<Partition> parts_;
  IndexedVector<StepNodeId, StepNodeId> new_id_;               ///< in the part of the node's device
  std::vector<StepEndpoint> inputs_;                           ///< of the node that is being added
  IndexedVector<StepNodeId, std::vector<bool>> host_outputs_;  ///< where its device has a memory of its own
  EdgePositions<StepNodeId> feeds_;
  IndexedVector<StepNodeId, bool> has_feed_;
  std::map<MemoryId, MemoryNumber> memory_numbers_;
  MemoryNumber client_memory_;
  std::vector<Memories> memories_;  ///< by device
  BroughtNodes brought_;
  const BodyEdges* body_edges_ = nullptr;                           ///< of a body
  std::map<std::pair<StepNodeId, std::size_t>, StepNodeId> given_;  ///< feeds by device
  std::vector<JoinedControls> joined_;
  std::unordered_map<std::size_t, JoinedTo> joined_to_;  ///< by device
  PositionTable joined_table_;
};

}  // namespace detail

Partitions partition(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels,
                     const DeviceInfo& client) {
  graph = split_calls(std::move(graph), devices, kernels);
  const std::int32_t only = graph.nodes.empty() ? 0 : graph.nodes.front().placed_on;
  Partition whole;
  whole.device = static_cast<std::size_t>(only);
  if (memory_of(devices[whole.device]) != host_memory_of(client) ||
      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [&](const StepNode& node) { return node.placed_on != only; })) {
    require_topological_order(graph);
    return detail::Partitioner(std::move(graph), devices, kernels, client).partition();
  }
  for (std::size_t i = 0; i < graph.feeds.size(); ++i) whole.feeds.push_back(i);
  for (std::size_t i = 0; i < graph.fetches.size(); ++i) whole.fetches.push_back(i);
  whole.graph = std::move(graph);
  Partitions all;
  all.parts.push_back(std::move(whole));
  return all;
}

std::vector<StepGraph> partition_body(StepGraph body, const BodyEdges& edges, std::span<const DeviceInfo> devices,
                                      std::span<const KernelTables> kernels) {
  const DeviceInfo& first = devices[edges.devices.front()];
  return detail::Partitioner(std::move(body), devices, kernels, first).partition_body(edges);
}

}  // namespace dflow
