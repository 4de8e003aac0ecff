#pragma once

/// Public: models: graphs with values of variables, and named inputs and outputs.

#include <dflow/core/named_tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/session/session.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {
struct ModelDef;
}

/// An edge under the name by which callers of a model know it.
struct NamedEdge {
  std::string name;
  AnyOutput edge;
};

/// One way to call a model: edges that are fed, and edges that are fetched. Any edge may be an input, also an edge that
/// the graph computes in training, such as the batch that a queue gives.
///
/// ```cpp
/// df::Signature signature{"serving_default", {{"image", images}}, {{"logits", logits}, {"label", label}}};
/// ```
struct Signature {
  std::string name;
  std::vector<NamedEdge> inputs, outputs;
};

/// Anything that a program wants to know of a model: its version, its license, the names of its classes.
using ModelMetadata = std::map<std::string, std::string>;

/// Tensors by name: the results of a call of a model.
///
/// Thread safety: a value type.
/// Errors: NotFound for a name that is not there, with the names that are; InvalidArgument for another element type.
class NamedTensors {
 public:
  NamedTensors() = default;
  explicit NamedTensors(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}

  const AnyTensor& operator[](std::string_view name) const;
  template <Element T>
  Tensor<T> get(std::string_view name) const {
    return (*this)[name].as<T>();
  }
  std::size_t size() const noexcept { return tensors_.size(); }
  auto begin() const noexcept { return tensors_.begin(); }
  auto end() const noexcept { return tensors_.end(); }

 private:
  std::vector<NamedTensor> tensors_;
};

/// A signature of a model, ready to be called with tensors by name. It keeps all that it needs: the model and its
/// session may be gone.
///
/// ```cpp
/// df::PreparedModel predict = model.prepare("serving_default");
/// df::Tensor<float> logits = predict({{"image", image}}).get<float>("logits");
/// ```
/// Thread safety: may be called from several threads at once.
/// Errors: InvalidArgument, naming the input, for a missing input, an input that is given twice, and a tensor of
/// another element type or shape; NotFound for a name that is no input; the errors of a step; FailedPrecondition if it
/// was moved from.
class PreparedModel {
 public:
  /// The name, element type and shape of an input or output. Dimensions may be open.
  struct Edge {
    std::string name;
    DType dtype = DType::invalid;
    PartialShape shape;
  };

  /// Blocks.
  NamedTensors operator()(std::initializer_list<NamedTensor> inputs) const {
    return run({}, nullptr, std::span(inputs.begin(), inputs.size()));
  }
  NamedTensors operator()(std::span<const NamedTensor> inputs) const { return run({}, nullptr, inputs); }
  /// The same with a deadline, a stop token or a trace.
  NamedTensors run(const RunOptions& options, RunMetadata* metadata, std::span<const NamedTensor> inputs) const;
  /// Starts the call and returns. `done` is called as `Session::run_async_erased` says, and gets the errors of the
  /// inputs too. The tensors are the outputs in the order of the signature.
  void run_async(const RunOptions& options, std::span<const NamedTensor> inputs, Session::AnyDone done) const;

  const std::vector<Edge>& inputs() const;
  const std::vector<Edge>& outputs() const;

 private:
  friend class Model;
  struct State;
  explicit PreparedModel(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const;

  std::shared_ptr<const State> state_;
};

/// A graph with values for its variables, and signatures: named inputs and outputs. It has what the signatures reach,
/// and nothing else of the graph that it was made of. A model is run by names, saved, frozen, and trained on
/// (models/models.hpp).
///
/// ```cpp
/// df::Model model = df::models::load("models/digits");
/// auto predict = model.prepare("serving_default");
/// auto out = predict({{"image", image}});
/// ```
/// A model that is loaded or made of a session has no device constraints. Its variables have the initial values that
/// were saved: `initialize_variables` sets them to these, and the variables of new layers and optimizers to their own.
///
/// A copy has a graph, and a session, of its own.
///
/// Thread safety: const functions may be called from several threads at once, `prepare` included. Building on the graph
/// needs the caller's lock, see Graph.
/// Errors: NotFound for a name that is not there, with the names that are near; FailedPrecondition for a model that was
/// moved from.
class Model {
 public:
  /// Copies what the signatures reach of the session's graph, with the present values of variables and the contents of
  /// lookup tables. A part of a partitioned variable stays a variable of its own. Blocks. Values come to this process
  /// from the tasks that hold them.
  ///
  /// The graph gets a node for each lookup table, once: no other thread may build.
  /// Errors: InvalidArgument for signatures without names, without outputs, with two inputs that are one edge, or with
  /// edges of another graph; InvalidArgument that names the node for a queue, reader or other state that a signature
  /// reaches and a model does not hold. FailedPrecondition for a variable without a value. Errors of a step.
  Model(Session& session, const std::vector<Signature>& signatures, ModelMetadata metadata = {});
  Model(const Model& other);
  Model(Model&&) noexcept;
  Model& operator=(const Model& other);
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// The graph, to build on: a loss, an optimizer, a new layer.
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  /// In the order in which they were given.
  std::vector<Signature> signatures() const;
  Signature signature(std::string_view name) const;
  /// The input or output of that name. Errors also: InvalidArgument if signatures have different edges of that name.
  AnyOutput input(std::string_view name) const;
  AnyOutput output(std::string_view name) const;
  /// Errors also: InvalidArgument for another element type.
  template <Element T>
  Output<T> input(std::string_view name) const {
    return input(name).as<T>();
  }
  template <Element T>
  Output<T> output(std::string_view name) const {
    return output(name).as<T>();
  }
  const ModelMetadata& metadata() const noexcept { return metadata_; }
  /// The values of the variables by their names: those that the model was made with. Constants are none of them.
  const std::vector<NamedTensor>& values() const noexcept { return values_; }

  /// Sets the variables of the model to its values in a session of its graph, and fills its lookup tables. Blocks.
  /// Errors: InvalidArgument for a session of another graph; errors of a step.
  void initialize(Session& session) const;

  /// Compiles a signature. All calls that the model prepares share a session, which is made and initialised for the
  /// first of them. Blocks. Errors also: errors of a session and of compiling a step.
  PreparedModel prepare(std::string_view signature) const;
  /// The same in a session of the model's graph, which the caller has initialised.
  PreparedModel prepare(Session& session, std::string_view signature) const;

 private:
  friend struct detail::ModelDef;
  struct Runner;
  struct Call {
    std::string name;
    std::vector<std::pair<std::string, Endpoint>> inputs, outputs;
  };

  Model(detail::ModelDef def, const OpTable& ops, std::shared_ptr<const SessionOptions> options);
  void take(detail::ModelDef def, const OpTable& ops);
  /// Errors: FailedPrecondition if the model was moved from.
  void check_is_here() const;
  const Call& call(std::string_view name) const;
  Signature signature_of(const Call& of) const;
  AnyOutput find(std::string_view name, bool is_input) const;
  AnyOutput edge(Endpoint endpoint) const { return {graph_.store(), endpoint}; }
  Session& session() const;

  Graph graph_;
  std::vector<Call> calls_;
  std::vector<NamedTensor> values_;
  std::vector<NodeId> initializers_;  ///< assignments of values, and fillings of tables
  ModelMetadata metadata_;
  std::shared_ptr<const SessionOptions> options_;  ///< of its own session
  std::shared_ptr<Runner> runner_;                 ///< null in a model that was moved from
};

}  // namespace dflow
