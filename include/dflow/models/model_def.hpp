#pragma once

#include <dflow/core/named_tensor.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/op_def.hpp>
#include <dflow/models/model.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::detail {

/// A model as data. Variables have no initial values in the graph.
struct ModelDef {
  struct Signature {
    std::string name;
    std::vector<std::pair<std::string, std::string>> inputs, outputs;  ///< names, and edges: "node" or "node:1"
  };

  GraphDef graph;
  std::vector<Signature> signatures;
  std::vector<NamedTensor> values;  ///< by the names of variables
  ModelMetadata metadata;

  /// The collection of operations that fill lookup tables; TensorFlow's name.
  static constexpr std::string_view table_initializers = "table_initializers";

  /// The nodes of the session's graph that the signatures reach, with the session's values.
  static ModelDef of(Session& session, std::span<const dflow::Signature> signatures, ModelMetadata metadata);
  /// The nodes of a model that some of its signatures reach.
  static ModelDef of(const Model& model, std::span<const dflow::Signature> signatures);
  /// Errors: the errors of importing a graph; InvalidArgument if the graph does not have the signatures' edges.
  static Model build(ModelDef def, const OpTable& ops, std::shared_ptr<const SessionOptions> options) {
    return {std::move(def), ops, std::move(options)};
  }
  /// Builds with the ops of the model's graph, and the ops that freezing puts in.
  static Model build_like(const Model& model, ModelDef def);
};

/// The treatment of a variable that the graph writes to.
enum class WrittenVariables : std::uint8_t { refuse, keep };

/// Puts constants in the place of variables.
void freeze_variables(ModelDef& def, WrittenVariables written);

/// Adds to the graph, for each variable, the node that assigns its value, and a node that reads it if there is none.
/// Returns the names of the nodes that assign.
/// Errors: DataLoss for a variable without a value, or of another element type; InvalidArgument for two nodes of one
/// name.
std::vector<std::string> add_initial_values(ModelDef& def);

/// Errors: InvalidArgument for names that are empty or there twice, a signature without outputs, and two inputs of a
/// signature that are one edge.
void check_signatures(std::span<const ModelDef::Signature> signatures);

/// A table of the ops that a graph has, and some that this floor puts in. Thread safety: immutable.
class OpsOfGraph {
 public:
  explicit OpsOfGraph(const GraphStore& graph);
  OpTable table() const { return OpTable(std::span<const OpDef* const>(ops_)); }

 private:
  std::vector<const OpDef*> ops_;
};

}  // namespace dflow::detail
