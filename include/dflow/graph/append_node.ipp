#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/infer_context.hpp>
#include <dflow/graph/op_args.hpp>

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Values of a node's inputs as far as the graph tells: constants, and shapes of known edges.
class GraphInputValues final : public InputValues {
 public:
  GraphInputValues(const GraphStore& graph, std::span<const Endpoint> inputs)
      : graph_(graph), inputs_(inputs), constants_(inputs.size()) {}

  const AnyTensor* value(int i) const override {
    AnyTensor& constant = constants_[static_cast<std::size_t>(i)];
    if (constant.is_initialized()) return &constant;
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    if (source.op->role != OpRole::constant) return nullptr;
    constant = std::get<AnyTensor>(attr_of(source, source.op->attr_fields[0]));
    return &constant;
  }

  std::optional<PartialShape> value_as_shape(int i) const override {
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    if (source.op->role == OpRole::shape) {
      const Endpoint of = source.inputs[0];
      const PartialShape& shape = graph_.node(of.node).outputs[static_cast<std::size_t>(of.index)].shape;
      if (shape.has_rank()) return shape;
    }
    return std::nullopt;
  }

  DType variable_dtype(int i) const override {
    const Node& source = graph_.node(inputs_[static_cast<std::size_t>(i)].node);
    return source.op->role == OpRole::variable ? source.types[0] : DType::invalid;
  }

 private:
  const GraphStore& graph_;
  std::span<const Endpoint> inputs_;
  mutable std::vector<AnyTensor> constants_;
};

/// The signature of a node to be built, against the edges and attributes it is asked for with.
class SignatureCheck {
 public:
  explicit SignatureCheck(const NodeRequest& request)
      : op_(*request.op), inputs_(request.inputs), lists_(*request.op, request.attrs.get()), types_(request.types) {}

  /// Checks every edge and fills the type parameters that the inputs decide.
  TypeArgs resolve_types() {
    const std::size_t open_length = check_count();
    types_.size = static_cast<std::uint8_t>(op_.type_params.size());
    std::size_t position = 0;
    for (const ArgDef& arg : op_.inputs) {
      if (!arg.is_list()) {
        check_input(arg, position++);
      } else if (arg.kind == ArgDef::Kind::typed_list) {
        for (const DType dtype : lists_.dtypes(arg)) check_fixed(dtype, position++);
      } else {
        std::size_t length = arg.is_open_list() ? open_length : static_cast<std::size_t>(lists_.length(arg));
        for (; length > 0; --length) check_input(arg, position++);
      }
    }
    check_type_params();
    return types_;
  }

  std::vector<OutputInfo> declare_outputs() const {
    std::vector<OutputInfo> outputs;
    outputs.reserve(op_.outputs.size());
    for (const ArgDef& arg : op_.outputs) {
      const std::int64_t length = lists_.output_length(arg);
      if (length > max_list_outputs) reject(str_cat(op_.name, ": cannot have ", length, " outputs"));
      if (arg.kind == ArgDef::Kind::typed_list) {
        for (const DType dtype : lists_.dtypes(arg)) outputs.push_back({dtype, PartialShape::unknown()});
      } else {
        const DType dtype = arg.is_of_fixed_type() ? arg.dtype : types_[arg.param];
        outputs.insert(outputs.end(), static_cast<std::size_t>(length), OutputInfo{dtype, PartialShape::unknown()});
      }
    }
    return outputs;
  }

 private:
  static constexpr std::int64_t max_list_outputs = 1 << 20;

  [[noreturn]] static void reject(std::string message) { throw_error(Status::invalid_argument(std::move(message))); }

  /// Throws unless the op takes as many inputs; returns how many of them are its open list.
  std::size_t check_count() const {
    std::size_t declared = 0;
    bool has_open_list = false;
    for (const ArgDef& arg : op_.inputs) {
      if (arg.is_open_list()) {
        has_open_list = true;
      } else {
        declared += static_cast<std::size_t>(lists_.length(arg));
      }
    }
    const std::size_t count = inputs_.size();
    if (count < declared || (count > declared && !has_open_list)) {
      reject(str_cat(op_.name, " takes ", has_open_list ? "at least " : "", declared, " inputs, got ", count));
    }
    return count - declared;
  }

  void check_input(const ArgDef& arg, std::size_t i) {
    if (arg.kind == ArgDef::Kind::any_list) return;
    if (arg.is_of_fixed_type()) return check_fixed(arg.dtype, i);
    const DType got = inputs_[i].dtype();
    DType& want = types_.values[arg.param];
    if (want == DType::invalid) want = got;
    if (want != got) {
      reject(str_cat(op_.name, ": input ", i, " is ", dtype_name(got), " where ", op_.type_params[arg.param].name,
                     " = ", dtype_name(want)));
    }
  }

  void check_fixed(DType want, std::size_t i) const {
    const DType got = inputs_[i].dtype();
    if (got == want) return;
    reject(str_cat(op_.name, ": input ", i, " must be ", dtype_name(want), ", got ", dtype_name(got)));
  }

  void check_type_params() const {
    for (std::size_t p = 0; p < op_.type_params.size(); ++p) {
      const TypeParamDef& param = op_.type_params[p];
      if (types_.values[p] == DType::invalid) {
        reject(str_cat(op_.name, ": type parameter ", param.name, " is not decided by its inputs"));
      }
      if (!param.allows(types_.values[p])) {
        reject(str_cat(op_.name, " is not defined for ", param.name, " = ", dtype_name(types_.values[p])));
      }
    }
  }

  const OpDef& op_;
  std::span<const AnyOutput> inputs_;
  ListAttrs lists_;
  TypeArgs types_;
};

void require_own_inputs(const GraphStore& graph, const NodeRequest& request) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const AnyOutput& input = request.inputs[i];
    if (input.is_of(&graph)) continue;
    throw_error(Status::invalid_argument(str_cat(request.op->name, ": input ", i,
                                                 input.is_dangling() ? " belongs to a graph that is gone"
                                                 : input.is_valid()  ? " belongs to another graph"
                                                                     : " is an empty Output")));
  }
}

/// The node of a request, complete except for the scope's additions and for a name that was not asked for.
Node make_node(const GraphStore& graph, const NodeRequest& request, std::source_location where) {
  require_own_inputs(graph, request);
  Node node;
  node.op = request.op;
  node.where = where;
  node.attrs = request.attrs;
  SignatureCheck signature(request);
  node.types = signature.resolve_types();
  node.outputs = signature.declare_outputs();
  node.inputs.reserve(request.inputs.size());
  for (const AnyOutput& input : request.inputs) node.inputs.push_back(input.endpoint());
  if (!request.name.empty()) {
    const auto check_name = request.is_part_of_step ? &check_step_node_name : &check_node_name;
    check_name(request.name, request.op->name, where);
    node.name = graph.scope().name_prefix + std::string(request.name);
    check_name(node.name, request.op->name, where);
    if (graph.has_name(node.name)) {
      throw_error(Status::invalid_argument(str_cat("a node named '", node.name, "' exists already")));
    }
  }
  infer_shapes(graph, node);
  return node;
}

/// A node built in a body may read nodes of the body and of bodies around it, and waits for no node outside: the call
/// waits.
void check_function(const GraphStore& graph, const Node& node) {
  const auto name_of = [&](NodeId function) { return graph.node(function).name; };
  if (node.function.is_valid() && graph.node(node.function).op->role != OpRole::function) {
    throw_error(Status::invalid_argument(str_cat("'", name_of(node.function), "' is no function")));
  }
  if (node.op->role == OpRole::function) {
    constexpr int max_depth = 256;
    int depth = 0;
    for (NodeId around = node.function; around.is_valid(); around = graph.node(around).function) {
      if (++depth < max_depth) continue;
      throw_error(Status::resource_exhausted(str_cat("functions in functions are nested deeper than ", max_depth)));
    }
  }
  for (const Endpoint input : node.inputs) {
    const Node& source = graph.node(input.node);
    if (source.function == node.function || graph.is_inside(node.function, source.function)) continue;
    throw_error(
        Status::invalid_argument(str_cat("'", source.name, "' is part of the body of '", name_of(source.function),
                                         "' and has no value outside of it: use what the call returns")));
  }
  for (const NodeId control : node.control_inputs) {
    const Node& source = graph.node(control);
    if (source.function == node.function) continue;
    throw_error(Status::invalid_argument(str_cat("'", source.name, "' is not part of the same body: ",
                                                 node.function.is_valid()
                                                     ? "let the call of '" + name_of(node.function) + "' wait for it"
                                                     : "wait for the call of '" + name_of(source.function) + "'")));
  }
  if (node.op->role == OpRole::variable && node.function.is_valid()) {
    throw_error(Status::invalid_argument(str_cat("a variable is made in the body of '", name_of(node.function),
                                                 "', which may run many times or never: make it outside")));
  }
  if (node.op->role == OpRole::argument || node.op->role == OpRole::results) {
    const std::optional<GraphStore::Function> function = graph.function(node.function);
    if (!function) throw_error(Status::invalid_argument(str_cat(node.op->name, " stands in no body of a function")));
    if (node.op->role == OpRole::argument) {
      const std::size_t number = argument_number(node);
      if (number < function->arguments.size() && function->arguments[number].is_valid()) {
        throw_error(Status::invalid_argument(
            str_cat("function '", name_of(node.function), "' has an argument ", number, " already")));
      }
    }
    if (node.op->role == OpRole::results && function->results.is_valid()) {
      throw_error(Status::invalid_argument(str_cat("function '", name_of(node.function), "' has its results already")));
    }
  }
}

/// Applies the device functions of the scope, the outermost first, and then the device of the scope itself.
std::string choose_device(const GraphStore::Scope& scope, const Node& node) {
  std::vector<const GraphStore::DeviceRule*> rules;  // innermost first
  for (const GraphStore::DeviceRule* rule = scope.device_rule.get(); rule != nullptr; rule = rule->outer_rule.get()) {
    rules.push_back(rule);
  }
  DeviceName chosen;
  for (; !rules.empty(); rules.pop_back()) {
    const GraphStore::DeviceRule& rule = *rules.back();
    if (!rule.outer_device.empty()) chosen = chosen.merged_with(DeviceName::parse(rule.outer_device));
    if (const std::string name = rule.choose(node); !name.empty()) {
      chosen = chosen.merged_with(DeviceName::parse(name));
    }
  }
  if (!scope.device.empty()) chosen = chosen.merged_with(DeviceName::parse(scope.device));
  return chosen.is_empty() ? std::string() : chosen.to_string();
}

NodeId append_seen(GraphStore& graph, const NodeRequest& request);

/// The inputs. An edge that the current scope does not see is replaced by the edge that stands for it.
std::vector<AnyOutput> bring_inputs(const GraphStore& graph, std::span<const AnyOutput> inputs) {
  const std::shared_ptr<GraphStore::ForeignEdges> foreign = graph.scope().foreign;
  std::vector<AnyOutput> brought(inputs.begin(), inputs.end());
  for (AnyOutput& input : brought) {
    if (!input.is_of(&graph)) continue;
    if (!graph.is_inside(graph.scope().function, input.node().function)) input = foreign->bring(input);
  }
  return brought;
}

}  // namespace detail

NodeId append_node(GraphStore& graph, const NodeRequest& request) {
  if (graph.scope().foreign != nullptr) {
    const std::vector<AnyOutput> brought = detail::bring_inputs(graph, request.inputs);
    NodeRequest seen = request;
    seen.inputs = brought;
    return detail::append_seen(graph, seen);
  }
  return detail::append_seen(graph, request);
}

NodeId detail::append_seen(GraphStore& graph, const NodeRequest& request) {
  const GraphStore::Scope& scope = graph.scope();
  const std::source_location where = scope.where.value_or(request.where);
  try {
    Node node = detail::make_node(graph, request, where);
    node.control_inputs = scope.control_inputs;
    node.function = scope.function;
    detail::check_function(graph, node);
    node.device = scope.device_rule == nullptr ? scope.device : detail::choose_device(scope, node);
    node.colocated_with = scope.colocated_with;
    if (node.name.empty()) node.name = graph.unique_name(request.op->name);
    return graph.append(std::move(node));
  } catch (...) {
    throw_error(status_of_current_exception().with_node(request.op->name, request.name).with_location(where));
  }
}

std::vector<PartialShape> detail::infer_results(const GraphStore& graph, NodeId begin,
                                                const GraphStore::Function& function,
                                                std::span<const PartialShape> arguments) {
  std::unordered_map<NodeId, std::vector<PartialShape>> known;  // of the body's nodes
  const auto shape_of = [&](Endpoint edge) {
    const auto found = known.find(edge.node);
    const auto output = static_cast<std::size_t>(edge.index);
    return found == known.end() ? graph.node(edge.node).outputs[output].shape : found->second[output];
  };
  for (std::size_t i = 0; i < function.arguments.size(); ++i) known[function.arguments[i]] = {arguments[i]};
  for (NodeId id = begin + 1; id < function.results; ++id) {
    const Node& node = graph.node(id);
    if (node.function != begin || node.op->role == OpRole::argument || node.outputs.empty()) continue;
    std::vector<PartialShape> inputs, outputs;
    std::vector<DType> dtypes;
    for (const OutputInfo& output : node.outputs) outputs.push_back(output.shape);
    for (const Endpoint input : node.inputs) {
      inputs.push_back(shape_of(input));
      dtypes.push_back(graph.node(input.node).outputs[static_cast<std::size_t>(input.index)].dtype);
    }
    if (node.op->infer != nullptr) {
      InferContext(node, inputs, dtypes, GraphInputValues(graph, node.inputs), outputs).infer();
    }
    known.emplace(id, std::move(outputs));
  }
  std::vector<PartialShape> results;
  for (const Endpoint result : graph.node(function.results).inputs) results.push_back(shape_of(result));
  return results;
}

void infer_shapes(const GraphStore& graph, Node& node) {
  if (node.op->infer == nullptr) return;
  constexpr std::size_t few = 8;
  std::array<PartialShape, few> few_inputs, few_outputs;
  std::array<DType, few> few_dtypes;
  std::vector<PartialShape> many_inputs, many_outputs;
  std::vector<DType> many_dtypes;
  const auto room = [](auto& few_items, auto& many_items, std::size_t count) {
    if (count > few) many_items.resize(count);
    return std::span(count > few ? many_items.data() : few_items.data(), count);
  };
  const auto inputs = room(few_inputs, many_inputs, node.inputs.size());
  const auto dtypes = room(few_dtypes, many_dtypes, node.inputs.size());
  const auto outputs = room(few_outputs, many_outputs, node.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint source = node.inputs[i];
    const OutputInfo& info = graph.node(source.node).outputs[static_cast<std::size_t>(source.index)];
    inputs[i] = info.shape;
    dtypes[i] = info.dtype;
  }
  for (PartialShape& shape : outputs) shape = PartialShape::unknown();
  const detail::GraphInputValues values(graph, node.inputs);
  InferContext(node, inputs, dtypes, values, outputs).infer();
  for (std::size_t i = 0; i < outputs.size(); ++i) node.outputs[i].shape = std::move(outputs[i]);
}

}  // namespace dflow
