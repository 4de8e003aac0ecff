#include "op_runner.hpp"

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include <stdexcept>

namespace dflow::testing {

using nlohmann::json;

AttrValue attr_from_json(const json& value, AttrKind kind, DType t) {
  switch (kind) {
    case AttrKind::boolean:
      return value.get<bool>();
    case AttrKind::integer:
      return value.get<std::int64_t>();
    case AttrKind::real:
      return value.get<double>();
    case AttrKind::string:
      return value.get<std::string>();
    case AttrKind::dtype:
      return dtype_from_oracle_name(value);
    case AttrKind::shape:
      return PartialShape(std::span<const std::int64_t>(value.get<std::vector<std::int64_t>>()));
    case AttrKind::integer_list:
      return value.get<std::vector<std::int64_t>>();
    case AttrKind::real_list:
      return value.get<std::vector<double>>();
    case AttrKind::string_list:
      return value.get<std::vector<std::string>>();
    case AttrKind::tensor: {
      const OracleTensor tensor = parse_oracle_tensor(value);
      return tensor.make(tensor.dtype_for(t));
    }
    default:
      throw std::runtime_error("the oracle has no attributes of this kind");
  }
}

namespace {

NodeId append(Graph& graph, const OpDef& op, std::span<const AnyOutput> inputs, const json& attrs, DType t) {
  NodeRequest request;
  request.op = &op;
  request.inputs = inputs;
  request.where = std::source_location::current();
  const std::shared_ptr<void> values = op.make_attrs();
  for (const auto& [name, value] : attrs.items()) {
    bool known = false;
    for (const AttrField& field : op.attr_fields) {
      if (field.name != name) continue;
      try {
        field.set(values.get(), attr_from_json(value, field.kind, t));
      } catch (const Error& error) {
        throw Error(error.status().with_node(op.name, ""));  // as an import does
      }
      known = true;
    }
    for (std::size_t p = 0; p < op.type_params.size(); ++p) {
      if (op.type_params[p].name != name) continue;
      request.types.values[p] = dtype_from_oracle_name(value);
      known = true;
    }
    if (!known) throw std::runtime_error("op " + std::string(op.name) + " has no attribute " + name);
  }
  request.attrs = values;
  // A type parameter that no input decides gets the element type under test.
  for (std::size_t p = 0; p < op.type_params.size(); ++p) {
    bool decided = request.types.values[p] != DType::invalid;
    for (const ArgDef& arg : op.inputs) {
      decided |= (arg.kind == ArgDef::Kind::param || arg.kind == ArgDef::Kind::param_list) && arg.param == p;
    }
    if (!decided) request.types.values[p] = t;
  }
  return append_node(*graph.store(), request);
}

AnyOutput placeholder_for(Graph& graph, const AnyTensor& tensor, InputsAs inputs_as) {
  return detail::any_placeholder(*graph.store(), tensor.dtype(),
                                 inputs_as == InputsAs::feeds ? PartialShape::unknown() : PartialShape(tensor.shape()),
                                 {});
}

}  // namespace

std::unique_ptr<BuiltCase> build_case(const OracleCase& oracle_case, DType t, InputsAs inputs_as,
                                      const std::vector<std::string>& device_of_input, std::source_location where) {
  auto built = std::make_unique<BuiltCase>();
  Graph& graph = built->graph;
  const ScopeGuard place = enter_place(*graph.store(), where);
  const OpTable& table = standard_op_table();
  const OpDef* op = table.find(oracle_case.op);
  if (op == nullptr) throw std::runtime_error("there is no op named " + oracle_case.op);
  const auto is_handle = [&](std::size_t i) { return i < op->inputs.size() && op->inputs[i].dtype == DType::resource; };
  std::vector<AnyOutput> args, reads;
  for (std::size_t i = 0; i < oracle_case.inputs.size(); ++i) {
    const OracleTensor& input = oracle_case.inputs[i];
    const AnyTensor tensor = input.make(input.dtype_for(t));
    std::optional<ScopeGuard> on;
    if (!device_of_input.empty()) on.emplace(graph.device(device_of_input[i % device_of_input.size()]));
    if (is_handle(i)) {
      json attrs{{"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())}};
      const AnyOutput handle(graph.store(), {append(graph, *table.find("Variable"), {}, attrs, tensor.dtype()), 0});
      const AnyOutput value = detail::any_constant(*graph.store(), tensor, {});
      const std::array<AnyOutput, 2> assign_inputs{handle, value};
      built->before.emplace_back(graph.store(), append(graph, *table.find("Assign"), assign_inputs, json::object(), t));
      const std::array<AnyOutput, 1> read_inputs{handle};
      reads.emplace_back(
          graph.store(),
          Endpoint{append(graph, *table.find("ReadVariable"), read_inputs, json::object(), tensor.dtype()), 0});
      args.push_back(handle);
      built->inputs.push_back(reads.back());
      continue;
    }
    AnyOutput edge;
    if (inputs_as == InputsAs::constants) {
      edge = detail::any_constant(*graph.store(), tensor, {});
    } else {
      edge = placeholder_for(graph, tensor, inputs_as);
      built->feeds.emplace_back(edge, tensor);
    }
    args.push_back(edge);
    built->inputs.push_back(edge);
  }
  std::optional<ScopeGuard> on;
  if (device_of_input.size() > 1) on.emplace(graph.device(device_of_input.back()));
  on.reset();
  const NodeId id = append(graph, *op, args, oracle_case.attrs, t);
  if (!reads.empty()) {
    built->updates.emplace_back(graph.store(), id);
    built->outputs = reads;
    return built;
  }
  for (std::size_t o = 0; o < oracle_case.outputs.size() && o < graph.node(id).outputs.size(); ++o) {
    built->outputs.emplace_back(graph.store(), Endpoint{id, static_cast<std::int32_t>(o)});
  }
  if (graph.node(id).outputs.empty()) built->updates.emplace_back(graph.store(), id);
  if (oracle_case.outputs.empty()) {
    for (std::size_t o = 0; o < graph.node(id).outputs.size(); ++o) {
      built->outputs.emplace_back(graph.store(), Endpoint{id, static_cast<std::int32_t>(o)});
    }
  }
  return built;
}

std::vector<AnyTensor> run_case(const BuiltCase& built, Session& session) {
  if (!built.before.empty()) session.run_erased({}, nullptr, {}, {}, built.before, {});
  if (!built.updates.empty()) session.run_erased({}, nullptr, built.feeds, {}, built.updates, {});
  std::vector<AnyTensor> results(built.outputs.size());
  std::vector<Feed> feeds;
  if (built.before.empty()) feeds = built.feeds;
  if (!results.empty()) session.run_erased({}, nullptr, feeds, built.outputs, {}, results);
  return results;
}

}  // namespace dflow::testing
