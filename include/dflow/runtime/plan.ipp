#pragma once

#include <dflow/runtime/plan.hpp>

#include <algorithm>
#include <utility>

namespace dflow {

/// Compiles a StepGraph to a Plan, one stage per function; the working arrays are indexed by the graph's node ids.
class PlanCompiler {
 public:
  PlanCompiler(StepGraph graph, const OpTable& table, const DeviceContext& device, StatefulKernels* stateful,
               InterOp inter_op, bool reuse_buffers, std::shared_ptr<const void> device_owner)
      : table_(table), stateful_(stateful), inter_op_(inter_op), reuse_buffers_(reuse_buffers), plan_(new Plan) {
    plan_->device_owner_ = std::move(device_owner);
    plan_->graph_ = std::move(graph);
    plan_->device_ = &device;
  }

  std::shared_ptr<const Plan> compile() {
    make_kernels();
    assign_slots();
    form_units();
    order_nodes();
    link_units();
    plan_releases();
    if (plan_->is_sequential_) reuse_slots();
    list_cleared_slots();
    return std::move(plan_);
  }

 private:
  static constexpr double cheap_ns = 5'000;        ///< below this a node joins the unit of its producers
  static constexpr double worth_a_thread_ns = 20'000;  ///< waking a parked thread costs 7 to 20 us
  static constexpr double splits_well_ns = 50'000;  ///< a kernel with so much for each thread keeps them all busy itself

  const StepGraph& graph() const { return plan_->graph_; }
  std::size_t num_nodes() const { return graph().nodes.size(); }

  bool is_constant(const Node& node) const { return node.op->name == "Const"; }
  /// Nodes without a kernel to run in the step: constants live in their slots, a fed placeholder's slot is the feed's.
  bool runs(NodeId id) const { return kernels_[static_cast<std::size_t>(id)] != nullptr; }

  void make_kernels() {
    const StepGraph& g = graph();
    kernels_.resize(num_nodes());
    is_async_.resize(num_nodes());
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      const Node& node = g.nodes[i];
      if (is_constant(node) || node.is_fed_only) continue;
      if (node.op->name == "Placeholder") {
        throw Error(invalid_argument(str_cat("placeholder '", node.name, "' must be fed a ", dflow::name(node.outputs[0].dtype),
                                             " tensor of shape ", node.outputs[0].shape.to_string()))
                        .with_node(node.op->name, node.name)
                        .with_location(node.where));
      }
      plan_->kernels_.push_back(make_kernel_of(node));
      kernels_[i] = plan_->kernels_.back().get();
      is_async_[i] = dynamic_cast<const AsyncKernel*>(kernels_[i]) != nullptr;
    }
  }

  std::shared_ptr<AnyKernel> make_kernel_of(const Node& node) {
    if (node.op->is_stateful && stateful_ != nullptr) {
      const auto found = stateful_->find(node.name);
      if (found != stateful_->end()) return found->second;
    }
    const DeviceContext& device = *plan_->device_;
    const KernelFactory make = table_.find_kernel(node.op->name, device.type);
    if (make == nullptr) {
      throw Error(not_found(str_cat("op ", node.op->name, " has no kernel for ", device.type, " devices"))
                      .with_node(node.op->name, node.name)
                      .with_device(device.name)
                      .with_location(node.where));
    }
    inputs_.clear();
    for (const Endpoint input : node.inputs) inputs_.push_back(graph().output(input));
    std::shared_ptr<AnyKernel> kernel;
    try {
      kernel = make(KernelInit{node, inputs_, device});
    } catch (...) {
      throw Error(status_of_current_exception()
                      .with_node(node.op->name, node.name)
                      .with_device(device.name)
                      .with_location(node.where));
    }
    if (kernel == nullptr) {
      throw Error(internal(str_cat("op ", node.op->name, " has no ", device.type, " kernel for these element types"))
                      .with_node(node.op->name, node.name)
                      .with_location(node.where));
    }
    if (node.op->is_stateful && stateful_ != nullptr) stateful_->emplace(node.name, kernel);
    return kernel;
  }

  // ---- slots: one per output, and one more per feed, which consumers read instead ----

  std::int32_t slot_of(Endpoint endpoint) const {
    for (std::size_t f = 0; f < graph().feeds.size(); ++f) {
      if (has_feed_[static_cast<std::size_t>(endpoint.node)] && graph().feeds[f] == endpoint) return plan_->feed_slots_[f];
    }
    return first_slot_[static_cast<std::size_t>(endpoint.node)] + endpoint.index;
  }

  void assign_slots() {
    first_slot_.resize(num_nodes());
    has_feed_.resize(num_nodes());
    std::int32_t next = 0;
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      first_slot_[i] = next;
      next += static_cast<std::int32_t>(graph().nodes[i].outputs.size());
    }
    for (const Endpoint feed : graph().feeds) {
      has_feed_[static_cast<std::size_t>(feed.node)] = true;
      plan_->feed_slots_.push_back(next++);
    }
    plan_->num_slots_ = next;
    for (const Endpoint fetch : graph().fetches) plan_->fetch_slots_.push_back(slot_of(fetch));
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      const Node& node = graph().nodes[i];
      if (!is_constant(node) || node.is_fed_only) continue;
      plan_->constants_.emplace_back(first_slot_[i], std::get<AnyTensor>(attr_of(node, node.op->attr_fields[0])));
    }
  }

  // ---- units ----

  template <class F>
  void for_each_producer(const Node& node, F&& visit) const {
    for (const Endpoint input : node.inputs) {
      if (runs(input.node) && !is_fed(input)) visit(input.node);
    }
    for (const NodeId control : node.control_inputs) {
      if (runs(control)) visit(control);
    }
  }

  bool is_fed(Endpoint endpoint) const {
    if (!has_feed_[static_cast<std::size_t>(endpoint.node)]) return false;
    return std::find(graph().feeds.begin(), graph().feeds.end(), endpoint) != graph().feeds.end();
  }

  void form_units() {
    unit_of_.assign(num_nodes(), -1);
    bool any_async = false;
    int expensive = 0;
    const int num_threads = plan_->device_->pool->num_threads();
    double split_ns = 0, whole_ns = 0;  // in kernels that keep all threads busy, and in those that do not
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      if (!runs(static_cast<NodeId>(i))) continue;
      any_async |= is_async_[i];
      const double cost_ns = kernels_[i]->cost_ns();
      if (cost_ns < worth_a_thread_ns) continue;
      ++expensive;
      (cost_ns >= splits_well_ns * num_threads ? split_ns : whole_ns) += cost_ns;
    }
    plan_->has_async_nodes_ = any_async;
    // Kernels side by side get in each other's caches, so one that can use all threads has them for itself.
    const bool units_gain = num_threads > 1 && expensive >= 2 && whole_ns > split_ns;
    plan_->is_sequential_ =
        !any_async && (inter_op_ == InterOp::sequential || (inter_op_ == InterOp::automatic && !units_gain));
    if (plan_->is_sequential_) return form_one_unit();

    constexpr std::int32_t none = -1, several = -2;
    std::int32_t source_unit = none;  // cheap nodes without producers share one unit
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (!runs(id)) continue;
      std::int32_t from = none;
      for_each_producer(graph().nodes[i], [&](NodeId producer) {
        const std::int32_t unit = unit_of_[static_cast<std::size_t>(producer)];
        from = from == none || from == unit ? unit : several;
      });
      const bool is_cheap = !is_async_[i] && kernels_[i]->cost_ns() < cheap_ns;
      if (is_cheap && from == none) {
        if (source_unit == none) source_unit = new_unit(false);
        unit_of_[i] = source_unit;
      } else if (is_cheap && from >= 0 && !units_[static_cast<std::size_t>(from)].is_async) {
        unit_of_[i] = from;
      } else {
        unit_of_[i] = new_unit(is_async_[i]);
      }
      unit_cost_[static_cast<std::size_t>(unit_of_[i])] += kernels_[i]->cost_ns();
    }
    for (std::size_t u = 0; u < units_.size(); ++u) units_[u].is_expensive = unit_cost_[u] >= worth_a_thread_ns;
  }

  void form_one_unit() {
    bool any = false;
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      if (!runs(static_cast<NodeId>(i))) continue;
      unit_of_[i] = 0;
      any = true;
    }
    if (any) new_unit(false);
  }

  std::int32_t new_unit(bool is_async) {
    Plan::Unit unit;
    unit.is_async = is_async;
    units_.push_back(unit);
    unit_cost_.push_back(0);
    return static_cast<std::int32_t>(units_.size()) - 1;
  }

  /// Lays the nodes out unit by unit, each unit in topological order.
  void order_nodes() {
    std::vector<std::int32_t> next(units_.size() + 1, 0);
    for (const std::int32_t unit : unit_of_) {
      if (unit >= 0) ++next[static_cast<std::size_t>(unit) + 1];
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
      next[u + 1] += next[u];
      units_[u].node_begin = next[u];
      units_[u].node_end = next[u + 1];
    }
    position_.assign(num_nodes(), -1);
    plan_->nodes_.resize(static_cast<std::size_t>(next.back()));
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      if (unit_of_[i] >= 0) position_[i] = next[static_cast<std::size_t>(unit_of_[i])]++;
    }
    std::size_t num_inputs = 0;
    for (std::size_t i = 0; i < num_nodes(); ++i) num_inputs += position_[i] < 0 ? 0 : graph().nodes[i].inputs.size();
    plan_->input_slots_.reserve(num_inputs);  // wirings point into it
    node_at_.assign(plan_->nodes_.size(), 0);
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      if (position_[i] >= 0) node_at_[static_cast<std::size_t>(position_[i])] = static_cast<NodeId>(i);
    }
    for (std::size_t p = 0; p < plan_->nodes_.size(); ++p) wire(p);
  }

  void wire(std::size_t position) {
    const auto i = static_cast<std::size_t>(node_at_[position]);
    const Node& node = graph().nodes[i];
    Plan::PlanNode& planned = plan_->nodes_[position];
    planned.kernel = kernels_[i];
    planned.cost_ns = kernels_[i]->cost_ns();
    planned.wiring.node = &node;
    planned.wiring.inputs = plan_->input_slots_.data() + plan_->input_slots_.size();
    planned.wiring.num_inputs = static_cast<std::int32_t>(node.inputs.size());
    planned.wiring.first_output = first_slot_[i];
    planned.wiring.num_outputs = static_cast<std::int32_t>(node.outputs.size());
    for (const Endpoint input : node.inputs) plan_->input_slots_.push_back(slot_of(input));
  }

  void link_units() {
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (std::size_t i = 0; i < num_nodes(); ++i) {
      if (unit_of_[i] < 0) continue;
      for_each_producer(graph().nodes[i], [&](NodeId producer) {
        const std::int32_t from = unit_of_[static_cast<std::size_t>(producer)];
        if (from != unit_of_[i]) edges.emplace_back(from, unit_of_[i]);
      });
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    plan_->unit_consumers_.reserve(edges.size());
    std::size_t e = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      units_[u].consumer_begin = static_cast<std::int32_t>(plan_->unit_consumers_.size());
      for (; e < edges.size() && edges[e].first == static_cast<std::int32_t>(u); ++e) {
        plan_->unit_consumers_.push_back(edges[e].second);
        ++units_[static_cast<std::size_t>(edges[e].second)].pending;
      }
      units_[u].consumer_end = static_cast<std::int32_t>(plan_->unit_consumers_.size());
    }
    plan_->units_ = std::move(units_);
  }

  // ---- when a slot's tensor is let go, and who may write into it ----

  void plan_releases() {
    const auto slots = static_cast<std::size_t>(plan_->num_slots_);
    constexpr std::int32_t unread = -1, kept = -2, shared = -3;
    std::vector<std::int32_t> reader_unit(slots, unread);
    std::vector<std::int32_t> last_reader(slots, -1);
    std::vector<std::int32_t> readers(slots, 0);
    for (const auto& [slot, tensor] : plan_->constants_) reader_unit[static_cast<std::size_t>(slot)] = kept;
    for (const std::int32_t slot : plan_->fetch_slots_) reader_unit[static_cast<std::size_t>(slot)] = kept;
    for (std::size_t p = 0; p < node_at_.size(); ++p) {
      const std::int32_t unit = unit_of_[static_cast<std::size_t>(node_at_[p])];
      for (const std::int32_t slot : inputs_at(p)) {
        std::int32_t& seen = reader_unit[static_cast<std::size_t>(slot)];
        if (seen == kept) continue;
        seen = seen == unread || seen == unit ? unit : shared;
        if (last_reader[static_cast<std::size_t>(slot)] != static_cast<std::int32_t>(p)) ++readers[static_cast<std::size_t>(slot)];
        last_reader[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(p);
      }
    }
    plan_->shared_read_counts_.assign(slots, 0);
    for (std::size_t s = 0; s < slots; ++s) {
      if (reader_unit[s] == shared) plan_->shared_read_counts_[s] = readers[s];
    }
    for (std::size_t p = 0; p < node_at_.size(); ++p) release_after(p, reader_unit, last_reader);
  }

  void release_after(std::size_t p, const std::vector<std::int32_t>& reader_unit,
                     const std::vector<std::int32_t>& last_reader) {
    constexpr std::int32_t unread = -1, kept = -2, shared = -3;
    Plan::PlanNode& planned = plan_->nodes_[p];
    planned.release_begin = static_cast<std::int32_t>(plan_->released_.size());
    planned.share_begin = static_cast<std::int32_t>(plan_->shared_reads_.size());
    const std::span<const std::int32_t> inputs = inputs_at(p);
    times_read_.resize(reader_unit.size());
    for (const std::int32_t slot : inputs) ++times_read_[static_cast<std::size_t>(slot)];
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::int32_t slot = inputs[k];
      const auto s = static_cast<std::size_t>(slot);
      const std::int32_t times_read = std::exchange(times_read_[s], 0);  // at its later positions: 0
      if (times_read == 0 || reader_unit[s] == kept) continue;
      if (reader_unit[s] == shared) {
        plan_->shared_reads_.push_back(slot);
      } else if (last_reader[s] == static_cast<std::int32_t>(p)) {
        plan_->released_.push_back(slot);
        if (reuse_buffers_ && k < 64 && times_read == 1) planned.wiring.forwardable |= std::uint64_t{1} << k;
      }
    }
    for (std::int32_t o = 0; o < planned.wiring.num_outputs; ++o) {
      const std::int32_t slot = planned.wiring.first_output + o;
      if (reader_unit[static_cast<std::size_t>(slot)] == unread) plan_->released_.push_back(slot);
    }
    planned.release_end = static_cast<std::int32_t>(plan_->released_.size());
    planned.share_end = static_cast<std::int32_t>(plan_->shared_reads_.size());
  }

  /// In one frozen order a slot whose tensor has been let go can hold another output: few slots stay warm in the cache.
  void reuse_slots() {
    constexpr std::int32_t unassigned = -1;
    std::vector<std::int32_t> new_slot(static_cast<std::size_t>(plan_->num_slots_), unassigned);
    std::vector<std::int32_t> free;
    std::int32_t next = 0;
    const auto keep = [&](std::int32_t& slot) {
      std::int32_t& renamed = new_slot[static_cast<std::size_t>(slot)];
      if (renamed == unassigned) renamed = next++;
      slot = renamed;
    };
    for (auto& [slot, tensor] : plan_->constants_) keep(slot);
    for (std::int32_t& slot : plan_->feed_slots_) keep(slot);
    // Fetched outputs keep a slot of their own, which stands in the run of their node's outputs.
    std::vector<std::int32_t> released = plan_->released_;
    for (Plan::PlanNode& node : plan_->nodes_) {
      const std::int32_t first = node.wiring.first_output, count = node.wiring.num_outputs;
      std::int32_t renamed = next;
      if (count == 1 && !free.empty()) {
        renamed = free.back();
        free.pop_back();
      } else {
        next += count;
      }
      for (std::int32_t o = 0; o < count; ++o) new_slot[static_cast<std::size_t>(first + o)] = renamed + o;
      node.wiring.first_output = renamed;
      for (std::int32_t r = node.release_begin; r < node.release_end; ++r) {
        std::int32_t& slot = released[static_cast<std::size_t>(r)];
        slot = new_slot[static_cast<std::size_t>(slot)];
        if (slot >= static_cast<std::int32_t>(plan_->constants_.size() + plan_->feed_slots_.size())) free.push_back(slot);
      }
    }
    for (std::int32_t& slot : plan_->input_slots_) slot = new_slot[static_cast<std::size_t>(slot)];
    for (std::int32_t& slot : plan_->fetch_slots_) slot = new_slot[static_cast<std::size_t>(slot)];
    plan_->released_ = std::move(released);
    plan_->shared_read_counts_.clear();
    plan_->num_slots_ = next;
  }

  void list_cleared_slots() {
    std::vector<bool> is_constant_slot(static_cast<std::size_t>(plan_->num_slots_));
    for (const auto& [slot, tensor] : plan_->constants_) is_constant_slot[static_cast<std::size_t>(slot)] = true;
    for (const std::vector<std::int32_t>* slots : {&plan_->feed_slots_, &plan_->fetch_slots_}) {
      for (const std::int32_t slot : *slots) {
        if (!is_constant_slot[static_cast<std::size_t>(slot)]) plan_->cleared_slots_.push_back(slot);
      }
    }
  }

  std::span<const std::int32_t> inputs_at(std::size_t p) const {
    const KernelContext::Wiring& wiring = plan_->nodes_[p].wiring;
    return {wiring.inputs, static_cast<std::size_t>(wiring.num_inputs)};
  }

  const OpTable& table_;
  StatefulKernels* stateful_;
  InterOp inter_op_;
  bool reuse_buffers_;
  std::shared_ptr<Plan> plan_;
  std::vector<const AnyKernel*> kernels_;
  std::vector<bool> is_async_;
  std::vector<OutputInfo> inputs_;
  std::vector<std::int32_t> first_slot_;
  std::vector<bool> has_feed_;
  std::vector<std::int32_t> unit_of_;
  std::vector<Plan::Unit> units_;
  std::vector<double> unit_cost_;
  std::vector<std::int32_t> position_;
  std::vector<NodeId> node_at_;
  std::vector<std::int32_t> times_read_;  ///< by the node being looked at, per slot
};

DFLOW_INLINE std::shared_ptr<const Plan> Plan::compile(StepGraph graph, const OpTable& table, const DeviceContext& device,
                                                       StatefulKernels* stateful, InterOp inter_op,
                                                       bool reuse_buffers, std::shared_ptr<const void> device_owner) {
  return PlanCompiler(std::move(graph), table, device, stateful, inter_op, reuse_buffers, std::move(device_owner)).compile();
}

}  // namespace dflow
