// The code that both readers of graphs share, in a unit of its own: most bodies of the library are behind it.
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/import.hpp>
#include <dflow/ops/standard_ops.hpp>
#include <dflow/passes/functions.hpp>
#include <dflow/passes/optimize.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/place.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/passes/step_graph_def.hpp>

#include "graph_def_fuzz.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>
#include <vector>

namespace dflow::fuzz {
namespace {

/// Two devices that have kernels for all ops; no kernel is made.
std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> infos(2);
  for (std::size_t d = 0; d < infos.size(); ++d) {
    infos[d].name = str_cat("/job:localhost/replica:0/task:0/device:CPU:", d);
    infos[d].type = "CPU";
  }
  return infos;
}
const std::vector<KernelTables>& kernels() {
  static const std::vector<KernelTables> tables = [] {
    std::vector<KernelEntry> entries;
    standard_op_table().for_each([&](const OpDef& op) {
      const KernelFactory make_none = [](const KernelInit&) { return std::unique_ptr<AnyKernel>(); };
      entries.push_back({.op = &op, .make = make_none});
    });
    return std::vector<KernelTables>(2, KernelTables({KernelTable("CPU", std::move(entries))}));
  }();
  return tables;
}

/// Steps of a graph. Each goes through the passes to parts, and the parts go to GraphDefs and back.
class Steps {
 public:
  explicit Steps(const Graph& graph) : graph_(*graph.store()), placement_(devices(), kernels(), true) {
    placement_.extend(graph_);
  }

  /// Runs steps with all nodes that may run as targets. One of the ways also runs, each alone, some nodes that call
  /// functions or are raw control flow.
  void run(std::uint64_t way) {
    constexpr std::size_t max_alone = 8;
    std::vector<NodeId> all, alone;
    for (const NodeId id : graph_.nodes().indices()) {
      const Node& node = graph_.node(id);
      const OpRole role = node.op->role;
      if (node.function.is_valid() || role == OpRole::kept_value) continue;
      all.push_back(id);
      const bool controls = calls_functions(role) || role == OpRole::exit || role == OpRole::merge;
      if (controls && alone.size() < max_alone) alone.push_back(id);
    }
    for (const bool lowers : {false, true}) {
      for (const bool raises : {false, true}) {
        const BodyOptions options{.lowers = lowers, .raises = {.everywhere = raises}, .max_nodes = 4096};
        run_step(all, options);
        if (way % 4 != (lowers ? 2u : 0u) + (raises ? 1u : 0u)) continue;
        for (const NodeId id : alone) run_step({id}, options);
      }
    }
  }

 private:
  void run_step(const std::vector<NodeId>& targets, const BodyOptions& options) const {
    Partitions parts;
    try {
      PruneScratch scratch;
      const auto place = [&](NodeId id, StepNode& node) {
        node.placed_on = static_cast<std::int32_t>(placement_.device_of(id));
      };
      StepGraph step = prune(graph_, {}, {}, targets, scratch, place);
      attach_bodies(graph_, step, scratch, place, options);
      require_topological_order(step);
      step = optimize(std::move(step), {}, {});
      parts = partition(std::move(step), placement_.devices(), kernels(), placement_.devices()[0]);
    } catch (const Error& error) {
      require(error.code() == Code::invalid_argument || error.code() == Code::unimplemented ||
              error.code() == Code::resource_exhausted || error.code() == Code::not_found);
      return;
    }
    for (const Partition& part : parts.parts) send(part.graph);
  }

  static void send(const StepGraph& part) {
    if (!part.feeds.empty() || !part.fetches.empty()) return;
    const StepGraphDef sent = to_step_graph_def(part);
    ImportOptions options;
    options.is_part_of_step = true;
    const Graph imported = import_graph(sent.graph, standard_op_table(), options);
    const StepGraph received = part_of_step(*imported.store(), sent, 0);
    require(received.targets.size() == part.targets.size());
  }

  const GraphStore& graph_;
  Placement placement_;
};

/// Puts some of the nodes that may be anywhere on the second device.
GraphDef dealt_out(GraphDef def, const Graph& graph) {
  const GraphStore& store = *graph.store();
  const auto has_handle = [](const OutputInfo& of) { return is_handle(of.dtype); };
  for (std::size_t i = 0; i < def.nodes.size(); i += 3) {
    const Node& node = store.node(NodeId(i));
    const bool may_be = node.device.empty() && !calls_functions(node.op->role) &&
                        std::none_of(node.outputs.begin(), node.outputs.end(), has_handle) &&
                        std::none_of(node.inputs.begin(), node.inputs.end(), [&](Endpoint edge) {
                          return has_handle(store.node(edge.node).outputs[static_cast<std::size_t>(edge.index)]);
                        });
    if (may_be) def.nodes[i].device = "/device:CPU:1";
  }
  return def;
}

}  // namespace

void import(const GraphDef& def) {
  ImportOptions options;
  options.max_list_outputs = 1 << 12;
  const auto here = std::source_location::current();  // one place for all imports, which note it in their nodes
  const OpTable& table = standard_op_table();
  GraphDef once;
  try {
    once = to_graph_def(import_graph(def, table, options, here));
  } catch (const Error& error) {
    require(error.code() == Code::invalid_argument || error.code() == Code::not_found ||
            error.code() == Code::resource_exhausted);
    return;
  }
  const Graph again = import_graph(once, table, options, here);
  require(to_graph_def(again) == once);
  Steps(again).run(def.seed);
  const bool has_control = std::any_of(once.nodes.begin(), once.nodes.end(), [](const NodeDef& node) {
    return !node.function.empty() || node.op == "Merge" || node.op == "Switch";
  });
  if (has_control) Steps(import_graph(dealt_out(once, again), table, options, here)).run(def.seed);
}

}  // namespace dflow::fuzz
