#pragma once

#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/runtime/frames/frame_run.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_units.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

namespace dflow::detail {

/// Compiles a body, one stage per function.
class FramePlanCompiler {
 public:
  FramePlanCompiler(const StepGraph& body, const PlanOptions& options) : plan_(new FramePlan), options_(options) {
    options_.streams = false;
    plan_->device_owner_ = options.device_owner;
    plan_->device_ = options.device;
    plan_->num_threads_ = options.num_threads > 0 ? options.num_threads : options.device->pool->num_threads();
    plan_->body_ = body;
  }

  std::shared_ptr<const FramePlan> compile() {
    require_topological_order(body());
    layout_ = lay_out_frames(body());
    feeds_ = {body().feeds, body().nodes.size()};
    number_nodes();
    make_kernels();
    assign_slots();
    place_constants();
    place_late_constants();
    for (const StepNodeId id : body().nodes.indices()) wire(id);
    for (const StepEndpoint fetch : body().fetches) plan_->fetches_.push_back(fetched(fetch));
    link();
    plan_->kernels_ = std::move(maker_.made);
    plan_->kept_kernels_ = std::move(maker_.kept);
    return std::move(plan_);
  }

 private:
  using Index = FramePlan::Index;
  using PlannedNode = FramePlan::PlannedNode;

  const StepGraph& body() const { return plan_->body_; }
  FramePlan::Frame& frame(std::ptrdiff_t i) { return plan_->frames_[static_cast<std::size_t>(i)]; }
  bool runs(StepNodeId id) const { return !body().node(id).is_fed_only && !layout_.is_everywhere[id]; }
  PlannedNode& planned(StepNodeId id) { return plan_->nodes_[static_cast<std::size_t>(position_[id])]; }
  static bool is_constant(const StepNode& node) { return node.op->role == OpRole::constant && !node.is_fed_only; }

  void number_nodes() {
    for (const FrameLayout::Frame& each : layout_.frames) {
      FramePlan::Frame& of_plan = plan_->frames_.emplace_back();
      of_plan.name = each.name;
      of_plan.num_enters = static_cast<Index>(each.num_enters);
      of_plan.parallel_iterations = each.parallel_iterations;
    }
    position_.assign(body().nodes.size(), -1);
    for (const StepNodeId id : body().nodes.indices()) {
      if (!runs(id)) continue;
      position_[id] = static_cast<Index>(plan_->nodes_.size());
      PlannedNode& node = plan_->nodes_.emplace_back();
      node.node = body().node(id).node;
      node.role = body().node(id).op->role;
      node.frame = static_cast<Index>(layout_.runs_in[id]);
      node.gives_to = static_cast<Index>(layout_.gives_to[id]);
      node.number = static_cast<Index>(frame(node.frame).pending.size());
      frame(node.frame).pending.push_back(0);
    }
  }

  void make_kernels() {
    entries_.resize(body().nodes.size());
    std::vector<OutputInfo> inputs;
    for (const StepNodeId id : body().nodes.indices()) {
      const StepNode& node = body().node(id);
      if (options_.check != nullptr && id.value() % 256 == 0) (*options_.check)();
      if (!runs(id) || passes_on(node.op->role) || is_constant(node)) continue;
      if (node.op->role == OpRole::placeholder) {
        throw_error(Status::invalid_argument(str_cat("placeholder '", node->name, "' must be fed"))
                        .with_node(node.op->name, node->name)
                        .with_location(node->where));
      }
      if (calls_functions(node.op->role)) {
        require_host_memory(node);
        planned(id).kernel = &maker_.make_call(node);
        planned(id).is_expensive = planned(id).kernel->cost_ns() >= worth_a_thread_ns;
        continue;
      }
      entries_[id] = &maker_.entry_of(*node);
      inputs.clear();
      for (const StepEndpoint input : body().inputs_of(node)) inputs.push_back(body().output(input));
      const KernelInit init{*node, inputs, *plan_->device_, entries_[id], options_.kernels};
      planned(id).kernel = &maker_.make(init);
      planned(id).is_expensive = estimated_ns(*planned(id).kernel, *entries_[id], init) >= worth_a_thread_ns;
    }
  }

  /// Slots of outputs are in the frame that the outputs are given to; slots of feeds are in the outermost frame.
  void assign_slots() {
    first_slot_.resize(body().nodes.size());
    for (const StepNodeId id : body().nodes.indices()) {
      if (!runs(id)) continue;
      FramePlan::Frame& to = frame(layout_.gives_to[id]);
      first_slot_[id] = SlotId(static_cast<std::size_t>(to.num_slots));
      to.num_slots += body().node(id).num_outputs;
    }
    for (std::size_t f = 0; f < body().feeds.size(); ++f) {
      plan_->feeds_.push_back(SlotId(static_cast<std::size_t>(frame(0).num_slots++)));
    }
  }

  /// Each frame that reads a constant has it in all of its iterations; in host memory too, where an argument there
  /// reads it.
  void place_constants() {
    std::vector<AnyTensor> values;
    std::vector<StepNodeId> to_bring;
    for (const StepNodeId id : body().nodes.indices()) {
      const StepNode& node = body().node(id);
      if (!is_constant(node)) continue;
      constants_[id] = constant_value(*node);
      if (plan_->device_->memory == nullptr || is_host_object(constants_[id].dtype())) continue;
      host_constants_[id] = constants_[id];
      to_bring.push_back(id);
      values.push_back(constants_[id]);
    }
    if (to_bring.empty()) return;
    BroughtConstants brought = bring_constants(*plan_->device_, values, options_.constants,
                                               {options_.clock, options_.deadline, options_.stop});
    throw_if_error(brought.status);
    for (std::size_t k = 0; k < to_bring.size(); ++k) constants_[to_bring[k]] = brought.constants[k]->here;
    plan_->shared_constants_ = std::move(brought.constants);
  }

  /// A constant that waits for a node is in its frame alone, and dead as long as it waits.
  void place_late_constants() {
    for (const StepNodeId id : body().nodes.indices()) {
      if (!is_constant(body().node(id)) || layout_.is_everywhere[id]) continue;
      planned(id).is_late_constant = true;
      frame(planned(id).frame).constants.emplace_back(first_slot_[id], constants_.at(id));
      frame(planned(id).frame).late.push_back(first_slot_[id]);
    }
  }

  /// The slot of a constant in a frame.
  SlotId constant_slot(StepNodeId id, std::ptrdiff_t in, bool on_host) {
    const bool of_host = on_host && host_constants_.contains(id);
    const auto [found, is_new] = constant_slots_.try_emplace(std::tuple(in, id, of_host));
    if (is_new) {
      FramePlan::Frame& of = frame(in);
      found->second = SlotId(static_cast<std::size_t>(of.num_slots++));
      of.constants.emplace_back(found->second, of_host ? host_constants_.at(id) : constants_.at(id));
    }
    return found->second;
  }

  SlotId slot_of(StepEndpoint edge, std::ptrdiff_t in, bool on_host) {
    if (const std::int32_t feed = feeds_.find(edge); feed >= 0) return plan_->feeds_[static_cast<std::size_t>(feed)];
    if (layout_.is_everywhere[edge.node]) return constant_slot(edge.node, in, on_host);
    return first_slot_[edge.node] + edge.index;
  }

  SlotId fetched(StepEndpoint edge) {
    const StepNode& node = body().node(edge.node);
    if (!feeds_.contains(edge) && layout_.gives_to[edge.node] != 0) {
      throw_error(Status::invalid_argument("it is inside of a frame, and cannot be fetched")
                      .with_node(node.op->name, node->name)
                      .with_location(node->where));
    }
    return slot_of(edge, 0, false);
  }

  void wire(StepNodeId id) {
    if (!runs(id)) return;
    const StepNode& node = body().node(id);
    PlannedNode& to = planned(id);
    const std::span<const StepEndpoint> inputs = body().inputs_of(node);
    const bool has_row = entries_[id] != nullptr;
    const bool is_on_device = plan_->device_->memory != nullptr;
    const std::vector<bool> on_host =
        has_row && is_on_device ? host_inputs_of(*node, *entries_[id]) : std::vector<bool>();
    wired_.push_back({position_[id], plan_->input_slots_.size()});
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      // The loop itself reads the side of a Switch.
      const bool wants_host = (!on_host.empty() && on_host[k]) || (node.op->role == OpRole::switch_op && k == 1);
      if (wants_host && is_on_device) require_on_host(inputs[k], node);
      plan_->input_slots_.push_back(slot_of(inputs[k], to.frame, wants_host));
    }
    to.wiring.node = node.node;
    to.wiring.num_inputs = static_cast<std::int32_t>(inputs.size());
    to.wiring.first_output = first_slot_[id];
    to.wiring.num_outputs = node.num_outputs;
    if (has_row) {
      to.is_trusted = entries_[id]->is_trusted;
      const std::vector<bool> of_host = is_on_device ? host_outputs_of(*node, *entries_[id]) : std::vector<bool>();
      if (!of_host.empty()) host_outputs_at_.push_back({position_[id], plan_->host_outputs_.size()});
      plan_->host_outputs_.insert(plan_->host_outputs_.end(), of_host.begin(), of_host.end());
    } else {
      to.is_trusted = to.kernel == nullptr;
    }
    if (node.op->role == OpRole::enter) {
      to.is_constant = std::get<bool>(attr_of(*node, node.op->attr_fields[1]));
    }
  }

  /// Sets the edges between nodes, how often each slot is read, and which nodes may write into their inputs.
  void link() {
    for (const auto& [position, begin] : wired_)
      plan_->nodes_[static_cast<std::size_t>(position)].wiring.inputs = plan_->input_slots_.data() + begin;
    for (const auto& [position, begin] : host_outputs_at_)
      plan_->nodes_[static_cast<std::size_t>(position)].wiring.host_outputs = plan_->host_outputs_.data() + begin;
    for (FramePlan::Frame& each : plan_->frames_) each.reads.assign(static_cast<std::size_t>(each.num_slots), 0);
    std::vector<std::pair<Index, FramePlan::Edge>> edges;
    for (const StepNodeId id : body().nodes.indices()) {
      if (runs(id)) link_node(id, edges);
    }
    for (FramePlan::Frame& each : plan_->frames_) {
      for (const auto& [slot, value] : each.constants) each.reads[slot.position()] = FramePlan::kept;
    }
    for (const SlotId fetch : plan_->fetches_) keep(fetch);
    std::stable_sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.output) < std::pair(b.first, b.second.output);
    });
    std::size_t e = 0;
    for (std::size_t p = 0; p < plan_->nodes_.size(); ++p) {
      PlannedNode& node = plan_->nodes_[p];
      node.edge_begin = static_cast<Index>(plan_->edges_.size());
      for (; e < edges.size() && edges[e].first == static_cast<Index>(p); ++e) plan_->edges_.push_back(edges[e].second);
      node.edge_end = static_cast<Index>(plan_->edges_.size());
      frame(node.frame).pending[static_cast<std::size_t>(node.number)] = node.pending;
      if (node.pending == 0 && node.role != OpRole::merge) plan_->first_.push_back(static_cast<Index>(p));
      node.may_forward = options_.reuse_buffers && node.kernel != nullptr;
    }
  }

  void keep(SlotId slot) { frame(0).reads[slot.position()] = FramePlan::kept; }

  void link_node(StepNodeId id, std::vector<std::pair<Index, FramePlan::Edge>>& edges) {
    const StepNode& node = body().node(id);
    PlannedNode& to = planned(id);
    const Index here = position_[id];
    const std::span<const StepEndpoint> inputs = body().inputs_of(node);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const SlotId slot = to.wiring.inputs[k];
      const bool is_read = to.role != OpRole::next_iteration || k == 0;  // the Merge is where it leads to
      if (is_read) ++frame(to.frame).reads[slot.position()];
      if (feeds_.contains(inputs[k]) || layout_.is_everywhere[inputs[k].node]) {
        // It is there from the beginning.
        if (to.role == OpRole::merge) frame(to.frame).merges.push_back({here, static_cast<Index>(k)});
        continue;
      }
      if (to.role != OpRole::merge) ++to.pending;
      require_there(inputs[k], node);
      edges.push_back({position_[inputs[k].node], {inputs[k].index, here, static_cast<Index>(k)}});
    }
    for (const StepNodeId control : body().controls_of(node)) {
      if (!control.is_valid() || !runs(control)) continue;
      ++to.pending;
      edges.push_back({position_[control], {-1, here, -1}});
    }
    if (to.role == OpRole::merge) to.num_data = static_cast<Index>(inputs.size());
    if (to.role == OpRole::next_iteration) {
      to.wiring.num_inputs = 1;
      PlannedNode& merge = planned(inputs[1].node);
      to.merge = position_[inputs[1].node];
      to.place = merge.num_data + num_next_[to.merge]++;
      merge.has_next = true;
    }
  }

  /// Only a step's own calls are split by the inputs that their bodies want in host memory.
  void require_host_memory(const StepNode& call) const {
    if (plan_->device_->memory == nullptr) return;
    throw_error(Status::unimplemented(
                    "it is called by raw control flow on a device with a memory of its own that does not have "
                    "the form of branches and loops")
                    .with_node(call.op->name, call->name)
                    .with_location(call->where));
  }

  /// Nothing in the loop copies from the device's memory.
  void require_on_host(StepEndpoint edge, const StepNode& reader) const {
    const StepNode& source = body().node(edge.node);
    const bool is_fed = feeds_.contains(edge);
    if (is_host_object(body().output(edge).dtype) || (!is_fed && layout_.is_everywhere[edge.node])) return;
    if (const KernelEntry* const entry = is_fed ? nullptr : entries_[edge.node]; entry != nullptr) {
      const std::vector<bool> of_host = host_outputs_of(*source.node, *entry);
      if (!of_host.empty() && of_host[static_cast<std::size_t>(edge.index)]) return;
    }
    throw_error(Status::unimplemented(str_cat("'", source->name,
                                              "' is read in host memory, by raw control flow on a device with "
                                              "a memory of its own that does not have the form of branches and loops"))
                    .with_node(reader.op->name, reader->name)
                    .with_location(reader->where));
  }

  /// The loop writes the number of a Merge's input into host memory.
  void require_there(StepEndpoint edge, const StepNode& reader) const {
    const StepNode& source = body().node(edge.node);
    if (source.op->role != OpRole::merge || edge.index == 0 || plan_->device_->memory == nullptr) return;
    throw_error(Status::unimplemented("the number of a Merge's input is read on a device with a memory of its own")
                    .with_node(reader.op->name, reader->name)
                    .with_location(reader->where));
  }

  std::shared_ptr<FramePlan> plan_;
  PlanOptions options_;
  PlanKernels maker_{plan_->body_, *options_.device, options_};
  FrameLayout layout_;
  EdgePositions<StepNodeId> feeds_;
  IndexedVector<StepNodeId, Index> position_;
  IndexedVector<StepNodeId, const KernelEntry*> entries_;
  IndexedVector<StepNodeId, SlotId> first_slot_;
  std::map<StepNodeId, AnyTensor> constants_;
  std::map<StepNodeId, AnyTensor> host_constants_;
  std::map<std::tuple<std::ptrdiff_t, StepNodeId, bool>, SlotId> constant_slots_;
  std::vector<std::pair<Index, std::size_t>> wired_;
  std::vector<std::pair<Index, std::size_t>> host_outputs_at_;
  std::map<Index, Index> num_next_;
};

std::shared_ptr<const FramePlan> FramePlan::compile(const StepGraph& body, const PlanOptions& options) {
  return FramePlanCompiler(body, options).compile();
}

}  // namespace dflow::detail
