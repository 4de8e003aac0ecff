#include <dflow/autodiff/gradients.hpp>

#include "op_runner.hpp"

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"

#include <algorithm>
#include <set>
#include <source_location>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

constexpr bool is_smooth(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

/// Differentiates oracle cases and looks at the places of the nodes that appear.
class PlaceCheck {
 public:
  /// False if the case has nothing to differentiate.
  bool run(const OracleCase& oracle_case, DType t) {
    const auto where = std::source_location::current();
    const std::unique_ptr<BuiltCase> built = build_case(oracle_case, t, InputsAs::known_feeds, {}, where);
    Edges xs, ys;
    for (const AnyOutput& input : built->inputs) {
      if (is_smooth(input.dtype())) xs.push_back(input);
    }
    for (const AnyOutput& output : built->outputs) {
      if (is_smooth(output.dtype())) ys.push_back(output);
    }
    if (xs.empty() || ys.empty()) return false;
    // Some ops cannot be differentiated through all of their outputs.
    return differentiate_thrice(built->graph, ys, xs, where) ||
           differentiate_thrice(built->graph, {ys.front()}, xs, where);
  }

  /// Ops on several devices, for which there is no oracle case.
  bool run_collectives() {
    const auto where = std::source_location::current();
    Graph graph;
    Edges values;
    for (int i = 0; i < 3; ++i) {
      const auto on = graph.device(str_cat("/cpu:", i));
      values.push_back(placeholder<float>(graph, {4}, {{}, where}));
    }
    bool all = true;
    for (const ReduceBy reduction : {ReduceBy::sum, ReduceBy::mean, ReduceBy::product, ReduceBy::maximum}) {
      all = differentiate_thrice(graph, detail::any_all_reduce(values, reduction, {{}, where}), values, where) && all;
    }
    all = differentiate_thrice(graph, detail::any_all_gather(values, {{}, where}), values, where) && all;
    const std::vector<std::string> devices = {"/cpu:1", "/cpu:2"};
    const Edges copies = detail::any_broadcast_to_devices(values[0], devices, {{}, where});
    return differentiate_thrice(graph, copies, {values[0]}, where) && all;
  }

  bool has_seen(std::string_view op) const { return seen_.contains(std::string(op)); }

 private:
  using Edges = std::vector<AnyOutput>;

  bool differentiate_thrice(const Graph& graph, const Edges& ys, const Edges& xs, const std::source_location& where) {
    Edges slopes = differentiate(graph, ys, xs, where);
    if (slopes.empty()) return false;
    for (int order = 2; order <= 3 && !slopes.empty(); ++order) slopes = differentiate(graph, slopes, xs, where);
    return true;
  }

  /// The gradients that exist. There are none if an op on the way has no gradient, and the error must then name the
  /// right line.
  Edges differentiate(const Graph& graph, const Edges& ys, const Edges& xs, const std::source_location& where) {
    const std::size_t before = graph.num_nodes();
    Edges slopes;
    try {
      const std::vector<Gradient> all = gradients(std::span<const AnyOutput>(ys), std::span<const AnyOutput>(xs));
      for (std::size_t i = 0; i < xs.size(); ++i) {
        if (all[i].exists()) slopes.push_back(densify(all[i], xs[i]));
      }
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.code() == Code::unimplemented);
      check_place(error.status().where().file_name(), error.status().where().line(), where);
      seen_.insert(std::string(error.status().op()));
      return {};
    }
    for (std::size_t i = 0; i < before; ++i) {
      seen_.insert(std::string(graph.node(static_cast<NodeId>(i)).op->name));
    }
    for (std::size_t i = before; i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(static_cast<NodeId>(i));
      INFO(node.op->name << " '" << node.name << "'");
      check_place(node.where.file_name(), node.where.line(), where);
    }
    return slopes;
  }

  static void check_place(std::string_view file, unsigned line, const std::source_location& where) {
    CHECK(file == where.file_name());
    CHECK(line == where.line());
  }

  std::set<std::string> seen_;
};

}  // namespace

TEST_CASE("every node of every op's gradient has the line that built what it differentiates", "[ops]") {
  PlaceCheck check;
  std::set<std::string> done;
  for (const OracleCase& oracle_case : oracle_cases()) {
    // Two cases of an op: they may differ in attributes.
    if (done.contains(oracle_case.op + "/2")) continue;
    for (const DType t : oracle_case.types) {
      if (!is_smooth(t)) continue;
      if (!check.run(oracle_case, t)) continue;
      done.insert(oracle_case.op + (done.contains(oracle_case.op) ? "/2" : ""));
      break;
    }
  }
  CHECK(check.run_collectives());
  // Ops on lists are not fed; tests/session/tensor_array_test.cpp differentiates them.
  const auto is_list = [](const ArgDef& arg) { return arg.dtype == DType::variant; };
  std::string missing;
  standard_op_table().for_each([&](const OpDef& op) {
    if (std::any_of(op.inputs.begin(), op.inputs.end(), is_list)) return;
    if (std::any_of(op.outputs.begin(), op.outputs.end(), is_list)) return;
    if (op.name == "Print") return;  // passes on the gradient as it is
    if (op.gradient != nullptr && !check.has_seen(op.name)) missing += std::string(op.name) + " ";
  });
  CHECK(missing == "");
}
