#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/kernels/shared/elementwise_chain.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_joins.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_units.hpp>
#include <dflow/runtime/plan/repeating.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace dflow {

std::shared_ptr<AnyKernel> KeptKernels::find(std::string_view device, std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto kernels = devices_.find(device);
  if (kernels == devices_.end()) return nullptr;
  const auto found = kernels->second.find(node);
  return found == kernels->second.end() ? nullptr : found->second;
}

std::shared_ptr<AnyKernel> KeptKernels::keep(std::string_view device, std::string_view node,
                                             std::shared_ptr<AnyKernel> kernel) {
  const std::lock_guard lock(mutex_);
  return devices_[std::string(device)].try_emplace(std::string(node), std::move(kernel)).first->second;
}

namespace detail {

/// Of a constant that others wait for: its tensor is there from the beginning, what it was built after is not.
class AfterControlInputs final : public AnyKernel {
 public:
  AfterControlInputs() : AnyKernel(KernelTraits{}) {}
  void run(KernelContext&) const override {}
  double cost_ns() const noexcept override { return 0; }
};

}  // namespace detail

/// Compiles a StepGraph to a Plan, one stage per function.
class PlanCompiler {
 public:
  PlanCompiler(StepGraph graph, const PlanOptions& options) : options_(options), plan_(new Plan) {
    plan_->device_owner_ = options.device_owner;
    plan_->graph_ = std::move(graph);
    plan_->device_ = options.device;
    plan_->streams_ = options.streams;
    if (options.streams) shift_ = plan_->graph_.feeds.size();
    maker_.emplace(plan_->graph_, *plan_->device_, options_);
  }

  std::shared_ptr<const Plan> compile() {
    // Everything that follows relies on it. Loops are nodes that call plans, or a graph for a loop of its own.
    require_topological_order(graph());
    make_kernels();
    assign_slots();
    group_nodes();
    join_nodes();
    order_nodes();
    link_units();
    plan_releases();
    reuse_slots();
    if (records()) find_recorded();
    list_cleared_slots();
    if (plan_->streams_) place_fetches();
    plan_->kernels_ = std::move(maker_->made);
    plan_->kept_kernels_ = std::move(maker_->kept);
    return std::move(plan_);
  }

 private:
  using Index = std::int32_t;
  template <class T>
  using ByNode = IndexedVector<StepNodeId, T>;
  template <class T>
  using BySlot = IndexedVector<SlotId, T>;
  static constexpr std::size_t at(Index i) noexcept { return static_cast<std::size_t>(i); }

  const StepGraph& graph() const { return plan_->graph_; }
  std::size_t num_nodes() const { return graph().nodes.size(); }

  bool is_constant(const StepNode& node) const { return node.op->role == OpRole::constant; }
  /// Nodes without a kernel to run in the step: constants live in their slots, a fed placeholder's slot is the feed's.
  /// A constant that comes after nodes that run has a kernel without outputs, so that who waits for it waits for them.
  bool runs(StepNodeId id) const { return kernels_[id] != nullptr; }
  detail::UnitNode& unit_node(StepNodeId id) { return unit_nodes_[shift_ + id.position()]; }

  void check_in(StepNodeId id) const {
    const bool is_due = id.value() % 256 == 0 || graph().node(id).op == &op_def<ElementwiseChain>;  // compiled for long
    if (options_.check != nullptr && is_due) (*options_.check)();
  }

  void make_kernels() {
    const StepGraph& g = graph();
    kernels_.resize(num_nodes());
    entries_.resize(num_nodes());
    candidates_.resize(num_nodes());
    unit_nodes_.resize(shift_ + num_nodes());
    for (const StepNodeId id : g.nodes.indices()) {
      check_in(id);
      const StepNode& node = g.node(id);
      if (node.is_fed_only) continue;
      if (is_constant(node)) {
        const std::span<const StepNodeId> controls = g.controls_of(node);
        const bool is_late =
            std::any_of(controls.begin(), controls.end(), [&](StepNodeId control) { return runs(control); });
        if (is_late) run_as(id, after_controls());
        continue;
      }
      if (node.op->role == OpRole::placeholder) {
        throw_error(invalid_argument(str_cat("placeholder '", node->name, "' must be fed a ",
                                             dflow::name(node->outputs[0].dtype), " tensor of shape ",
                                             node->outputs[0].shape.to_string()))
                        .with_node(node.op->name, node->name)
                        .with_location(node->where));
      }
      if (calls_functions(node.op->role)) {
        const AnyKernel& kernel = maker_->make_call(node);
        run_as(id, kernel);
        unit_node(id).cost_ns = std::max(kernel.cost_ns(), 1.0);
        continue;
      }
      entries_[id] = &maker_->entry_of(*node);
      inputs_.clear();
      for (const StepEndpoint input : g.inputs_of(node)) inputs_.push_back(g.output(input));
      const KernelInit init{*node, inputs_, *plan_->device_, entries_[id], options_.kernels};
      run_as(id, maker_->make(init));
      unit_node(id).cost_ns = estimated_ns(*kernels_[id], *entries_[id], init);
      find_joint_kernel(id, init);
    }
  }

  void find_joint_kernel(StepNodeId id, const KernelInit& init) {
    if (!options_.joins_nodes || init.entry->joint == nullptr) return;
    const JointKernel* const joint = init.entry->joint(init.node.types);
    if (joint == nullptr) return;
    const std::optional<std::int64_t> bytes = joint->held_bytes(init);
    if (bytes) candidates_[id] = {joint, *bytes};
  }

  void run_as(StepNodeId id, const AnyKernel& kernel) {
    kernels_[id] = &kernel;
    detail::UnitNode& unit = unit_node(id);
    unit.runs = true;
    unit.is_async = kernel.is_async();
    unit.splits = kernel.traits().splits;
    plan_->carries_dead_ |= kernel.traits().makes_dead_outputs;
    plan_->nests_ |= kernel.traits().nests;
  }

  const AnyKernel& after_controls() {
    if (after_controls_ == nullptr) {
      after_controls_ = &maker_->own(std::make_unique<detail::AfterControlInputs>());
    }
    return *after_controls_;
  }

  // ---- slots: one per output, and one more per feed, which consumers read instead ----

  bool wants_host(StepNodeId id, std::size_t input) const {
    return !host_inputs_.empty() && !host_inputs_[id].empty() && host_inputs_[id][input];
  }

  Index feed_of(StepEndpoint endpoint) const { return feeds_.find(endpoint); }

  SlotId slot_of(StepEndpoint endpoint, bool on_host) const {
    if (const Index feed = feed_of(endpoint); feed >= 0) return plan_->feed_slots_[at(feed)];
    if (on_host) {
      if (const auto found = host_constant_.find(endpoint.node); found != host_constant_.end()) return found->second;
    }
    return first_slot_[endpoint.node] + endpoint.index;
  }

  void assign_slots() {
    first_slot_.resize(num_nodes());
    feeds_ = {graph().feeds, num_nodes()};
    SlotId next(0);
    for (const StepNodeId id : graph().nodes.indices()) {
      first_slot_[id] = next;
      next += graph().node(id).num_outputs;
    }
    for (std::size_t f = 0; f < graph().feeds.size(); ++f) plan_->feed_slots_.push_back(next++);
    plan_->num_slots_ = next.position();
    place_constants();
    for (const StepEndpoint fetch : graph().fetches) plan_->fetch_slots_.push_back(slot_of(fetch, false));
  }

  /// In host memory as they are; for a device with memory of its own a copy there, and one more slot where an argument
  /// in host memory reads it.
  void place_constants() {
    const bool is_host = plan_->device_->memory == nullptr;
    ByNode<bool> read_on_host(is_host ? 0 : num_nodes());
    if (!is_host) {
      host_inputs_.resize(num_nodes());
      for (const StepNodeId id : graph().nodes.indices()) {
        const StepNode& node = graph().node(id);
        if (entries_[id] != nullptr) host_inputs_[id] = host_inputs_of(*node, *entries_[id]);
        const std::span<const StepEndpoint> inputs = graph().inputs_of(node);
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          if (wants_host(id, k)) read_on_host[inputs[k].node] = true;
        }
      }
    }
    std::vector<StepNodeId> to_bring;
    std::vector<AnyTensor> values;
    for (const StepNodeId id : graph().nodes.indices()) {
      check_in(id);
      const StepNode& node = graph().node(id);
      if (!is_constant(node) || node.is_fed_only) continue;
      AnyTensor value = constant_value(*node);
      if (!is_host && read_on_host[id]) {
        const SlotId slot(plan_->num_slots_++);
        host_constant_.emplace(id, slot);
        plan_->constants_.emplace_back(slot, value);
      }
      if (is_host || is_host_object(value.dtype())) {
        plan_->constants_.emplace_back(first_slot_[id], std::move(value));
      } else {
        to_bring.push_back(id);
        values.push_back(std::move(value));
      }
    }
    if (!to_bring.empty()) bring_constants(to_bring, values);
  }

  void bring_constants(const std::vector<StepNodeId>& ids, const std::vector<AnyTensor>& values) {
    if (options_.check != nullptr) (*options_.check)();
    detail::BroughtConstants brought = detail::bring_constants(*plan_->device_, values, options_.constants,
                                                               {options_.clock, options_.deadline, options_.stop});
    if (brought.failed >= 0) {
      const Node& node = *graph().node(ids[static_cast<std::size_t>(brought.failed)]);
      throw_error(brought.status.with_node(node.op->name, node.name)
                      .with_device(plan_->device_->name)
                      .with_location(node.where));
    }
    throw_if_error(brought.status);
    for (std::size_t k = 0; k < ids.size(); ++k)
      plan_->constants_.emplace_back(first_slot_[ids[k]], brought.constants[k]->here);
    plan_->shared_constants_ = std::move(brought.constants);
  }

  // ---- units ----

  /// The producers that a node waits for, by position among what units are formed of: late feeds, then the nodes.
  template <class F>
  void for_each_producer(const StepNode& node, F&& visit) const {
    for (const StepEndpoint input : graph().inputs_of(node)) {
      if (const Index feed = feed_of(input); feed >= 0) {
        if (plan_->streams_) visit(feed);
      } else if (runs(input.node)) {
        visit(static_cast<Index>(shift_) + input.node.value());
      }
    }
    for (const StepNodeId control : graph().controls_of(node)) {
      if (runs(control)) visit(static_cast<Index>(shift_) + control.value());
    }
  }

  void group_nodes() {
    for (std::size_t f = 0; f < shift_; ++f) unit_nodes_[f].runs = unit_nodes_[f].is_async = true;
    const int num_threads = options_.num_threads > 0 ? options_.num_threads : plan_->device_->pool->num_threads();
    std::vector<Index> producers;
    const bool needs_producers = !detail::is_sequential(unit_nodes_, options_.inter_op, num_threads);
    for (const StepNodeId id : graph().nodes.indices()) {
      if (!needs_producers) break;
      detail::UnitNode& node = unit_node(id);
      node.producer_begin = static_cast<Index>(producers.size());
      if (node.runs) for_each_producer(graph().node(id), [&](Index producer) { producers.push_back(producer); });
      node.producer_end = static_cast<Index>(producers.size());
    }
    detail::Units formed = detail::form_units(unit_nodes_, producers, options_.inter_op, num_threads);
    plan_->is_sequential_ = formed.is_sequential;
    units_.resize(formed.units.size());
    for (const UnitId unit : units_.indices()) {
      units_[unit].is_async = formed.units[unit].is_async;
      units_[unit].is_expensive = formed.units[unit].is_expensive;
    }
    for (std::size_t f = 0; f < shift_; ++f) {
      units_[formed.unit_of[f]].is_feed = true;
      plan_->feed_units_.push_back(formed.unit_of[f]);
    }
    unit_of_.assign(formed.unit_of.begin() + static_cast<std::ptrdiff_t>(shift_), formed.unit_of.end());
    for (const StepNodeId id : graph().nodes.indices()) {
      if (kernels_[id] != nullptr && kernels_[id]->traits().nests) units_[unit_of_[id]].is_nested = true;
    }
    find_brief_units();
  }

  void find_brief_units() {
    if (plan_->device_->is_asynchronous) return;
    IndexedVector<UnitId, double> cost_ns(units_.size());
    for (const UnitId unit : units_.indices()) units_[unit].is_brief = !units_[unit].is_async && !units_[unit].is_feed;
    for (const StepNodeId id : graph().nodes.indices()) {
      const UnitId unit = unit_of_[id];
      if (!unit.is_valid()) continue;
      cost_ns[unit] += unit_node(id).cost_ns;
      units_[unit].is_brief &= is_brief(id) && cost_ns[unit] < detail::worth_a_thread_ns;
    }
  }

  /// Whatever it reads or makes is small; of what is not known beforehand nothing is.
  bool is_brief(StepNodeId id) {
    constexpr std::int64_t small = 16384;
    const KernelEntry* const entry = entries_[id];
    if (calls_functions(graph().node(id).op->role)) return false;
    if (entry == nullptr) return true;  // a constant's place
    if (!entry->is_trusted || kernels_[id]->cost_ns() <= 0) return false;
    const auto is_small = [](const PartialShape& shape) {
      return shape.is_fully_defined() && shape.to_shape().num_elements() <= small;
    };
    const StepNode& node = graph().node(id);
    for (const StepEndpoint input : graph().inputs_of(node)) {
      if (!is_small(graph().output(input).shape)) return false;
    }
    return std::all_of(node->outputs.begin(), node->outputs.end(),
                       [&](const OutputInfo& output) { return is_small(output.shape); });
  }

  // ---- nodes that run as one ----

  void join_nodes() {
    joins_ = detail::PlanJoins::find(graph(), candidates_, unit_of_);
    joined_.resize(joins_.groups.size());
    for (std::size_t g = 0; g < joined_.size(); ++g) join(joins_.groups[g], joined_[g]);
  }

  /// What stands for a group: the kernel of all, and a node that has the name of the first.
  struct Joined {
    const AnyKernel* kernel = nullptr;
    const Node* node = nullptr;
    double cost_ns = 0;
  };

  void join(const std::vector<StepNodeId>& group, Joined& joined) {
    std::vector<std::vector<OutputInfo>> inputs(group.size());
    std::vector<KernelInit> inits;
    for (std::size_t m = 0; m < group.size(); ++m) {
      const StepNode& node = graph().node(group[m]);
      for (const StepEndpoint input : graph().inputs_of(node)) inputs[m].push_back(graph().output(input));
      inits.push_back({*node, inputs[m], *plan_->device_, entries_[group[m]]});
      joined.cost_ns += unit_node(group[m]).cost_ns;
    }
    const Node& first = *graph().node(group.front());
    Node& node = plan_->joint_nodes_.emplace_back();
    node.op = first.op;
    node.name = str_cat(without_copy(first.name), " + ", group.size() - 1, " more");
    node.types = first.types;
    node.attrs = first.attrs;
    node.where = first.where;
    joined.node = &node;
    joined.kernel = &maker_->own(candidates_[group.front()].kernel->make(inits));
  }

  const std::vector<StepNodeId>* group_of(StepNodeId id) const {
    if (joins_.groups.empty() || joins_.group_of[id] < 0) return nullptr;
    return &joins_.groups[at(joins_.group_of[id])];
  }

  /// Calls `visit` for the nodes that run as one with this one.
  template <class F>
  void for_each_joined(StepNodeId id, F&& visit) const {
    const std::vector<StepNodeId>* const group = group_of(id);
    if (group == nullptr) return visit(id);
    for (const StepNodeId member : *group) visit(member);
  }

  /// Calls `visit` for the nodes that run, in an order in which they may, with one node for each group.
  template <class F>
  void for_each_in_order(F&& visit) const {
    if (!joins_.groups.empty()) {
      for (const StepNodeId id : joins_.order) visit(id);
      return;
    }
    for (const StepNodeId id : graph().nodes.indices()) {
      if (unit_of_[id].is_valid()) visit(id);
    }
  }

  /// Lays the nodes out unit by unit, each unit in topological order.
  void order_nodes() {
    IndexedVector<UnitId, PlanNodeId> next(units_.size() + 1, PlanNodeId(0));
    for_each_in_order([&](StepNodeId id) { ++next[unit_of_[id] + 1]; });
    for (const UnitId unit : units_.indices()) {
      next[unit + 1] += next[unit].value();
      units_[unit].node_begin = next[unit];
      units_[unit].node_end = next[unit + 1];
    }
    plan_->nodes_.resize(next.back().position());
    std::size_t num_inputs = 0;
    node_at_.resize(plan_->nodes_.size());
    for_each_in_order([&](StepNodeId id) {
      node_at_[next[unit_of_[id]]++] = id;
      const std::vector<StepNodeId>* const group = group_of(id);
      num_inputs += (group == nullptr ? 1 : group->size()) * graph().node(id).num_inputs;
    });
    if (records()) {
      for (const Plan::Unit& unit : units_) gather_repeating(unit.node_begin, unit.node_end);
    }
    plan_->input_slots_.reserve(num_inputs);  // wirings point into it
    find_host_outputs();
    for (const PlanNodeId position : node_at_.indices()) wire(position);
  }

  void find_host_outputs() {
    first_host_output_.assign(num_nodes(), -1);
    if (plan_->device_->memory == nullptr) return;
    for (const StepNodeId id : graph().nodes.indices()) {
      if (entries_[id] == nullptr) continue;
      const std::vector<bool> on_host = host_outputs_of(*graph().node(id), *entries_[id]);
      if (!on_host.empty()) first_host_output_[id] = static_cast<Index>(plan_->host_outputs_.size());
      plan_->host_outputs_.insert(plan_->host_outputs_.end(), on_host.begin(), on_host.end());
    }
  }

  void wire(PlanNodeId position) {
    const StepNodeId id = node_at_[position];
    const StepNode& node = graph().node(id);
    const std::span<const StepEndpoint> inputs = graph().inputs_of(node);
    Plan::PlanNode& planned = plan_->nodes_[position];
    if (const std::vector<StepNodeId>* const group = group_of(id)) return wire_group(*group, planned);
    planned.kernel = kernels_[id];
    planned.cost_ns = unit_node(id).cost_ns;
    planned.wiring.node = node.node;
    planned.wiring.inputs = plan_->input_slots_.data() + plan_->input_slots_.size();
    planned.wiring.num_inputs = static_cast<std::int32_t>(inputs.size());
    planned.wiring.first_output = first_slot_[id];
    planned.is_trusted = true;
    const bool is_call = calls_functions(node.op->role);
    if (entries_[id] == nullptr && !is_call) return;  // a constant, whose slot is set
    planned.wiring.num_outputs = node.num_outputs;
    if (first_host_output_[id] >= 0) planned.wiring.host_outputs = plan_->host_outputs_.data() + first_host_output_[id];
    planned.is_trusted = !is_call && entries_[id]->is_trusted;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      plan_->input_slots_.push_back(slot_of(inputs[k], wants_host(id, k)));
  }

  void wire_group(const std::vector<StepNodeId>& group, Plan::PlanNode& planned) {
    const Joined& joined = joined_[at(joins_.group_of[group.front()])];
    planned.kernel = joined.kernel;
    planned.cost_ns = joined.cost_ns;
    planned.is_trusted = true;  // there are no outputs
    planned.wiring.node = joined.node;
    planned.wiring.inputs = plan_->input_slots_.data() + plan_->input_slots_.size();
    planned.wiring.first_output = first_slot_[group.back()];
    for (const StepNodeId id : group) {
      const std::span<const StepEndpoint> inputs = graph().inputs_of(graph().node(id));
      for (std::size_t k = 0; k < inputs.size(); ++k)
        plan_->input_slots_.push_back(slot_of(inputs[k], wants_host(id, k)));
      planned.wiring.num_inputs += static_cast<std::int32_t>(inputs.size());
    }
  }

  void link_units() {
    std::vector<std::pair<UnitId, UnitId>> edges;
    for (const StepNodeId id : graph().nodes.indices()) {
      if (units_.size() <= 1) break;
      if (!unit_of_[id].is_valid()) continue;
      for_each_producer(graph().node(id), [&](Index producer) {
        const bool is_feed = at(producer) < shift_;
        const UnitId from = is_feed ? plan_->feed_units_[at(producer)] : unit_of_[StepNodeId(at(producer) - shift_)];
        if (from != unit_of_[id]) edges.emplace_back(from, unit_of_[id]);
      });
    }
    // By producer, asynchronous consumers first.
    std::sort(edges.begin(), edges.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      const bool a_waits = units_[a.second].is_async, b_waits = units_[b.second].is_async;
      return a_waits != b_waits ? a_waits : a.second < b.second;
    });
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    plan_->unit_consumers_.reserve(edges.size());
    std::size_t e = 0;
    for (const UnitId unit : units_.indices()) {
      units_[unit].consumer_begin = static_cast<Index>(plan_->unit_consumers_.size());
      for (; e < edges.size() && edges[e].first == unit; ++e) {
        plan_->unit_consumers_.push_back(edges[e].second);
        ++units_[edges[e].second].pending;
      }
      units_[unit].consumer_end = static_cast<Index>(plan_->unit_consumers_.size());
    }
    for (const bool is_async : {true, false}) {
      for (const UnitId id : units_.indices()) {
        const Plan::Unit& unit = units_[id];
        if (unit.pending == 0 && !unit.is_feed && unit.is_async == is_async) plan_->first_units_.push_back(id);
      }
    }
    plan_->units_ = std::move(units_);
  }

  /// Which unit makes each fetch, and the other way round.
  void place_fetches() {
    std::vector<std::pair<UnitId, std::size_t>> made;  // the number of the fetch
    for (std::size_t f = 0; f < graph().fetches.size(); ++f) {
      const StepEndpoint fetch = graph().fetches[f];
      const Index feed = feed_of(fetch);
      const UnitId unit = feed >= 0 ? plan_->feed_units_[at(feed)] : unit_of_[fetch.node];
      plan_->fetch_units_.push_back(unit);
      if (unit.is_valid()) made.emplace_back(unit, f);
    }
    std::sort(made.begin(), made.end());
    std::size_t m = 0;
    for (const UnitId id : plan_->units_.indices()) {
      Plan::Unit& unit = plan_->units_[id];
      unit.fetch_begin = static_cast<Index>(plan_->unit_fetches_.size());
      for (; m < made.size() && made[m].first == id; ++m) plan_->unit_fetches_.push_back(made[m].second);
      unit.fetch_end = static_cast<Index>(plan_->unit_fetches_.size());
    }
  }

  // ---- when a slot's tensor is let go, and who may write into it ----

  /// Instead of the unit that reads a slot.
  static constexpr UnitId unread = UnitId(-1), kept = UnitId(-2), shared = UnitId(-3);

  void plan_releases() {
    BySlot<UnitId> reader_unit(plan_->num_slots_, unread);
    BySlot<PlanNodeId> last_reader(plan_->num_slots_);
    BySlot<Index> readers(plan_->num_slots_, 0);
    for (const auto& [slot, tensor] : plan_->constants_) reader_unit[slot] = kept;
    for (const SlotId slot : plan_->fetch_slots_) reader_unit[slot] = kept;
    for (std::size_t f = options_.holds_feeds_from; f < plan_->feed_slots_.size(); ++f) {
      reader_unit[plan_->feed_slots_[f]] = kept;
    }
    for (const PlanNodeId p : node_at_.indices()) {
      const UnitId unit = unit_of_[node_at_[p]];
      for (const SlotId slot : inputs_at(p)) {
        UnitId& seen = reader_unit[slot];
        if (seen == kept) continue;
        seen = seen == unread || seen == unit ? unit : shared;
        if (last_reader[slot] != p) ++readers[slot];
        last_reader[slot] = p;
      }
    }
    plan_->shared_read_counts_.assign(plan_->num_slots_, 0);
    for (const SlotId slot : readers.indices()) {
      if (reader_unit[slot] == shared) plan_->shared_read_counts_[slot] = readers[slot];
    }
    for (const PlanNodeId p : node_at_.indices()) release_after(p, reader_unit, last_reader);
  }

  void release_after(PlanNodeId p, const BySlot<UnitId>& reader_unit, const BySlot<PlanNodeId>& last_reader) {
    Plan::PlanNode& planned = plan_->nodes_[p];
    planned.release_begin = static_cast<std::int32_t>(plan_->released_.size());
    planned.share_begin = static_cast<std::int32_t>(plan_->shared_reads_.size());
    const std::span<const SlotId> inputs = inputs_at(p);
    times_read_.resize(reader_unit.size());
    for (const SlotId slot : inputs) ++times_read_[slot];
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const SlotId slot = inputs[k];
      const Index times_read = std::exchange(times_read_[slot], 0);  // at its later positions: 0
      if (times_read == 0 || reader_unit[slot] == kept) continue;
      if (reader_unit[slot] == shared) {
        plan_->shared_reads_.push_back(slot);
      } else if (last_reader[slot] == p) {
        plan_->released_.push_back(slot);
        if (options_.reuse_buffers && k < 64 && times_read == 1) planned.wiring.forwardable |= std::uint64_t{1} << k;
      }
    }
    for (std::int32_t o = 0; o < planned.wiring.num_outputs; ++o) {
      const SlotId slot = planned.wiring.first_output + o;
      if (reader_unit[slot] == unread) plan_->released_.push_back(slot);
    }
    planned.release_end = static_cast<std::int32_t>(plan_->released_.size());
    planned.share_end = static_cast<std::int32_t>(plan_->shared_reads_.size());
  }

  /// New names of slots, by their old ones.
  struct Renaming {
    BySlot<SlotId> new_slot;
    BySlot<bool> is_pinned;  ///< of constants and feeds, by new name
    SlotId next{0};
  };

  /// Inside a unit, which is one frozen order, a slot whose tensor has been let go can hold another output: few slots
  /// stay warm in the cache. A slot that another unit made or reads keeps its name.
  void reuse_slots() {
    Renaming renaming{BySlot<SlotId>(plan_->num_slots_), BySlot<bool>(plan_->num_slots_)};
    pin_slots(renaming);
    rename_outputs(renaming);
    BySlot<Index> counts(plan_->is_sequential_ ? 0 : renaming.next.position());
    for (const SlotId slot : plan_->shared_read_counts_.indices()) {
      if (plan_->shared_read_counts_[slot] != 0) counts[renaming.new_slot[slot]] = plan_->shared_read_counts_[slot];
    }
    for (std::vector<SlotId>* slots :
         {&plan_->input_slots_, &plan_->fetch_slots_, &plan_->released_, &plan_->shared_reads_}) {
      for (SlotId& slot : *slots) slot = renaming.new_slot[slot];
    }
    plan_->shared_read_counts_ = std::move(counts);
    plan_->num_slots_ = renaming.next.position();
  }

  void pin_slots(Renaming& renaming) {
    const auto keep = [&](SlotId& slot) {
      SlotId& renamed = renaming.new_slot[slot];
      if (!renamed.is_valid()) renamed = renaming.next++;
      renaming.is_pinned[renamed] = true;
      slot = renamed;
    };
    for (auto& [slot, tensor] : plan_->constants_) keep(slot);
    for (SlotId& slot : plan_->feed_slots_) keep(slot);
  }

  /// An output takes a slot that its unit has let go of. Fetched ones keep a slot of their own, which stands in the run
  /// of their node's outputs.
  void rename_outputs(Renaming& renaming) {
    std::vector<SlotId> free;
    BySlot<UnitId> made_in(plan_->num_slots_);  // by old name
    for (const UnitId unit : plan_->units_.indices()) {
      free.clear();
      for (const PlanNodeId p : IndexRange(plan_->units_[unit].node_begin, plan_->units_[unit].node_end)) {
        Plan::PlanNode& node = plan_->nodes_[p];
        const SlotId first = node.wiring.first_output;
        const Index count = node.wiring.num_outputs;
        SlotId renamed = renaming.next;
        if (count == 1 && !free.empty()) {
          renamed = free.back();
          free.pop_back();
        } else {
          renaming.next += count;
        }
        for (Index o = 0; o < count; ++o) {
          renaming.new_slot[first + o] = renamed + o;
          made_in[first + o] = unit;
        }
        node.wiring.first_output = renamed;
        for (Index r = node.release_begin; r < node.release_end; ++r) {
          const SlotId slot = plan_->released_[at(r)], now = renaming.new_slot[slot];
          if (made_in[slot] == unit && !renaming.is_pinned[now]) free.push_back(now);
        }
      }
    }
  }

  // ---- stretches whose work the device records ----

  bool records() const { return plan_->device_->recorder != nullptr && !plan_->streams_; }

  /// Issues the same work for the same shapes.
  bool repeats(StepNodeId id) const {
    const StepNode& node = graph().node(id);
    if (kernels_[id]->is_async() || node.op->is_stateful) return false;
    if (entries_[id] == nullptr) return !calls_functions(node.op->role);  // a constant's place
    const std::span<const StepEndpoint> inputs = graph().inputs_of(node);
    return kernels_[id]->traits().repeats &&
           std::none_of(node->outputs.begin(), node->outputs.end(),
                        [](const OutputInfo& output) { return is_host_object(output.dtype); }) &&
           std::none_of(inputs.begin(), inputs.end(),
                        [&](StepEndpoint input) { return is_host_object(graph().output(input).dtype); });
  }

  void gather_repeating(PlanNodeId begin, PlanNodeId end) {
    const std::vector<StepNodeId> nodes(node_at_.begin() + begin.value(), node_at_.begin() + end.value());
    if (nodes.size() < plan_->device_->recorder->min_nodes()) return;
    is_left_.resize(num_nodes());
    const auto set_left = [&](StepNodeId id, bool is_left) {
      for_each_joined(id, [&](StepNodeId member) { is_left_[member] = is_left; });
    };
    for (const StepNodeId id : nodes) set_left(id, true);
    const auto is_ready = [&](StepNodeId id) {
      bool waits = false;
      for_each_joined(id, [&](StepNodeId member) {
        for_each_producer(graph().node(member), [&](Index producer) {
          waits |= at(producer) >= shift_ && is_left_[StepNodeId(at(producer) - shift_)];
        });
      });
      return !waits;
    };
    PlanNodeId next = begin;
    detail::gather_repeating(
        nodes, [&](StepNodeId id) { return repeats(id); },
        [&](StepNodeId id) { return detail::may_update(graph(), graph().node(id)); }, is_ready,
        [&](StepNodeId id) {
          node_at_[next++] = id;
          set_left(id, false);
        });
  }

  void find_recorded() {
    for (const Plan::Unit& unit : plan_->units_) {
      PlanNodeId begin = unit.node_begin;
      for (const PlanNodeId p : IndexRange(unit.node_begin, unit.node_end)) {
        if (repeats(node_at_[p])) continue;
        record(begin, p);
        begin = p + 1;
      }
      record(begin, unit.node_end);
    }
  }

  void record(PlanNodeId begin, PlanNodeId end) {
    if (begin == end || static_cast<std::size_t>(end - begin) < plan_->device_->recorder->min_nodes()) return;
    Stretch stretch;
    enum class Made : std::uint8_t { before, here, on_host };
    std::map<SlotId, Made> made;  // the slots that it reads or writes
    for (const PlanNodeId p : IndexRange(begin, end)) {
      const Plan::PlanNode& node = plan_->nodes_[p];
      const std::span<const SlotId> inputs = inputs_at(p);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!made.emplace(inputs[k], Made::before).second) continue;
        (wants_host(node_at_[p], k) ? stretch.host_inputs : stretch.inputs).push_back(inputs[k]);
      }
      for (Index o = 0; o < node.wiring.num_outputs; ++o) {
        const bool is_on_host = node.wiring.host_outputs != nullptr && node.wiring.host_outputs[o] != 0;
        made[node.wiring.first_output + o] = is_on_host ? Made::on_host : Made::here;
      }
      for (Index r = node.release_begin; r < node.release_end; ++r) made[plan_->released_[at(r)]] = Made::before;
    }
    for (const auto& [slot, where] : made) {
      if (where != Made::before) (where == Made::here ? stretch.outputs : stretch.host_outputs).push_back(slot);
    }
    plan_->recorded_.push_back({begin, end, plan_->device_->recorder->record(std::move(stretch))});
  }

  void list_cleared_slots() {
    BySlot<bool> is_constant_slot(plan_->num_slots_);
    for (const auto& [slot, tensor] : plan_->constants_) is_constant_slot[slot] = true;
    BySlot<bool> stays = is_constant_slot;
    plan_->holds_feeds_from_ = options_.holds_feeds_from;
    for (std::size_t f = options_.holds_feeds_from; f < plan_->feed_slots_.size(); ++f) {
      const SlotId slot = plan_->feed_slots_[f];
      if (!stays[slot]) plan_->held_slots_.push_back(slot);
      stays[slot] = true;
    }
    BySlot<bool> is_taken = stays;
    if (plan_->streams_) {
      // A fetch may be taken while others have still to read its slot, and in any order.
      for (const SlotId slot : plan_->input_slots_) is_taken[slot] = true;
      BySlot<bool> is_fetched(is_taken.size());
      for (const SlotId slot : plan_->fetch_slots_) {
        if (is_fetched[slot]) is_taken[slot] = true;
        is_fetched[slot] = true;
      }
    }
    plan_->may_take_fetch_.resize(plan_->fetch_slots_.size());
    for (std::size_t f = plan_->fetch_slots_.size(); f-- > 0;) {
      const SlotId slot = plan_->fetch_slots_[f];
      plan_->may_take_fetch_[f] = !is_taken[slot];
      is_taken[slot] = true;
    }
    for (const std::vector<SlotId>* slots : {&plan_->feed_slots_, &plan_->fetch_slots_}) {
      for (const SlotId slot : *slots) {
        if (!stays[slot]) plan_->cleared_slots_.push_back(slot);
      }
    }
  }

  std::span<const SlotId> inputs_at(PlanNodeId p) const {
    const KernelContext::Wiring& wiring = plan_->nodes_[p].wiring;
    return {wiring.inputs, static_cast<std::size_t>(wiring.num_inputs)};
  }

  const PlanOptions& options_;
  std::shared_ptr<Plan> plan_;
  ByNode<const AnyKernel*> kernels_;
  std::optional<detail::PlanKernels> maker_;
  ByNode<const KernelEntry*> entries_;  ///< null for what does not run, and for constants
  const AnyKernel* after_controls_ = nullptr;
  std::vector<detail::UnitNode> unit_nodes_;  ///< late feeds, then the nodes
  std::vector<OutputInfo> inputs_;
  ByNode<detail::PlanJoins::Candidate> candidates_;
  detail::PlanJoins joins_;
  std::vector<Joined> joined_;             ///< by group
  ByNode<std::vector<bool>> host_inputs_;  ///< empty on a device of host memory
  ByNode<Index> first_host_output_;        ///< among the plan's; -1: it has none
  ByNode<SlotId> first_slot_;
  EdgePositions<StepNodeId> feeds_;
  std::unordered_map<StepNodeId, SlotId> host_constant_;
  std::size_t shift_ = 0;  ///< where the nodes begin among what units are formed of
  ByNode<UnitId> unit_of_;
  IndexedVector<UnitId, Plan::Unit> units_;
  IndexedVector<PlanNodeId, StepNodeId> node_at_;
  BySlot<Index> times_read_;  ///< by the node being looked at
  ByNode<bool> is_left_;      ///< of the unit that is being ordered, not placed yet
};

std::shared_ptr<const Plan> Plan::compile(StepGraph graph, const PlanOptions& options) {
  return PlanCompiler(std::move(graph), options).compile();
}

}  // namespace dflow
