#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/graph/scope_extensions.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/regularizers.hpp>
#include <dflow/train/variables/partitioners.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace dflow {

/// Whether a variable that a caller asks for by name may exist already, or must exist.
enum class Reuse : std::uint8_t {
  inherit,    ///< as in the scope around; outside all scopes: never
  never,      ///< makes the variable; AlreadyExists if it exists
  always,     ///< finds the variable; NotFound if it does not exist
  automatic,  ///< makes the variable if it does not exist
};

struct VariableScopeOptions {
  Reuse reuse = Reuse::inherit;
  /// For variables without an initializer of their own. Empty: as in the scope around; outside all scopes
  /// `init::glorot_uniform`.
  Initializer initializer = {};
  /// The same for the regularizer; outside all scopes there is none.
  Regularizer regularizer = {};
  /// The same for a `partitioned_variable` without a partitioner.
  Partitioner partitioner = {};
  /// float16, bfloat16 or float32: `Dense`, `Convolution2D` and recurrent cells inside make float variables. They cast
  /// variables and inputs to this type for their computation; results have the inputs' element type. Layers with
  /// double inputs stay as they are. Invalid: as in the scope around; outside all scopes layers compute in the inputs'
  /// element type.
  DType compute = DType::invalid;
};

struct GetVariableOptions {
  Initializer initializer = {};  ///< empty: the scope's
  /// Empty: the scope's, if the variable is trained. The collection "regularization_losses" has its loss once, however
  /// often the variable is shared.
  Regularizer regularizer = {};
  bool trainable = true;
  std::string_view slice = {};  ///< as in VariableOptions; an existing variable must be the same slice
};

/// The rules by which variables inside a variable scope are named and shared.
struct VariableScopeState final : ScopeExtension {
  std::string path;  ///< of its variables: "" or "tower/layer1"
  Reuse reuse = Reuse::never;
  Initializer initializer = init::glorot_uniform();
  Regularizer regularizer = {};
  Partitioner partitioner = {};
  DType compute = DType::invalid;  ///< of layers; invalid: their inputs'
  /// The state is around all variable scopes: variables in none of the scopes are named as if it did not exist.
  bool is_outermost = false;
  /// Names of layers and scopes inside that were taken since the scope was opened.
  std::set<std::string, std::less<>> taken = {};

  std::string path_of(std::string_view name) const;
  /// The name, or the first of "name_1", "name_2", ... that was not taken since the scope was opened. The same calls
  /// get the same names in each opening.
  std::string take_name(std::string_view name);
};

namespace detail {

/// The result of a search for a variable by name.
struct FoundVariable {
  AnyVariable variable;
  AnyOutput regularization_loss;  ///< of a new variable, if it has a regularizer
  bool is_new = false;
};

/// Makes the variable "prefix + name" in no collection, its first value, and the loss of the regularizer. Errors:
/// InvalidArgument for a name that is taken, and for wrong results of the initializer or regularizer.
FoundVariable make_variable(GraphStore& graph, std::string_view prefix, std::string_view name, DType dtype,
                            const Shape& shape, const Initializer& initializer, const Regularizer& regularizer,
                            const At& at, std::string_view slice = {});
/// Finds the variable `name` in the scope, or makes it if the scope allows, in no collection.
FoundVariable find_or_make_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name,
                                    DType dtype, const Shape& shape, const GetVariableOptions& options, const At& at);
/// The same; a new variable is in the collections "variables", "trainable_variables" and "regularization_losses".
AnyVariable any_get_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, DType dtype,
                             const Shape& shape, const GetVariableOptions& options, const At& at);
/// A variable that exists. Errors: NotFound.
AnyVariable existing_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, const At& at);
/// The graph's current scope, or a new one outside all scopes.
std::shared_ptr<VariableScopeState> variable_scope_of(GraphStore& graph);
/// The graph's current scope; null outside all scopes.
std::shared_ptr<VariableScopeState> open_variable_scope(const GraphStore& graph);

}  // namespace detail

/// A scope to be opened again after its block, from anywhere, with its path, reuse, initializer and regularizer.
///
/// Thread safety: a value type.
class VariableScopePath {
 public:
  explicit VariableScopePath(VariableScopeState state) : state_(std::move(state)) {}
  const std::string& path() const noexcept { return state_.path; }

 private:
  friend class VariableScope;
  VariableScopeState state_;
};

/// While a VariableScope lives, variables of its graph are made and found by name below its own name, as with
/// TensorFlow's `variable_scope` and `get_variable`. A model that is a function of its input is built twice with one
/// set of variables:
///
/// ```cpp
/// auto tower = [](df::Output<float> x, df::Graph& graph, df::Reuse reuse) {
///   df::VariableScope scope(graph, "tower", {.reuse = reuse});
///   auto w = scope.get_variable<float>("w", {784, 100});   // "tower/w"
///   return df::dense(df::tanh(df::matmul(x, w)), 10);      // "tower/dense/kernel" and "tower/dense/bias"
/// };
/// auto trained = tower(images, graph, df::Reuse::never), tested = tower(test_images, graph, df::Reuse::always);
/// ```
/// The name of a variable joins the names of the variable scopes around it, whatever the name scopes. Nodes are in a
/// name scope with the name of the variable scope, made unique: "tower/MatMul" and "tower_1/MatMul". The scope finds
/// any variable of the graph with the right name, also a variable that was imported or restored from a file.
///
/// Layers inside find their variables in the same way, as functions and at the first calls of objects. The name of a
/// layer is the name in its options, with a suffix if it comes again since the scope was opened ("dense", "dense_1").
/// The same calls in a scope that is opened again are therefore the same layers. If the `At` of the call has a name,
/// the layer has exactly that name. A layer without a regulariser, or with an empty initializer, takes the scope's.
///
/// Thread safety: belongs to the thread that builds the graph.
/// Errors: AlreadyExists or NotFound, by the scope's `Reuse`. InvalidArgument, naming both, if an existing variable
/// has another element type or shape than the caller asks for. InvalidArgument for a `compute` that is none of the
/// types that it allows, and for a graph that is gone.
class [[nodiscard]] VariableScope {
 public:
  /// Opens a scope inside the graph's current scope. Without a name it keeps the path of the current scope, and names
  /// no nodes.
  VariableScope(Graph& graph, std::string_view name, const VariableScopeOptions& options = {},
                std::source_location where = std::source_location::current());
  /// Opens a scope again, inside any scope. An option that is not given in `options` is as it was there.
  VariableScope(Graph& graph, const VariableScopePath& again, const VariableScopeOptions& options = {},
                std::source_location where = std::source_location::current());
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  /// The variable of that name in this scope.
  template <Element T>
  Variable<T> get_variable(std::string_view name, const Shape& shape, const GetVariableOptions& options = {},
                           const At& at = {}) const {
    return detail::any_get_variable(*graph_.get(), *state_, name, dtype_of<T>, shape, options, at).template as<T>();
  }
  /// An existing variable of any shape, whatever the scope's `Reuse` is. Errors: NotFound.
  template <Element T>
  Variable<T> existing_variable(std::string_view name, const At& at = {}) const {
    return detail::existing_variable(*graph_.get(), *state_, name, at).template as<T>();
  }

  /// From now on, this scope and scopes that are opened inside it make no variables.
  void reuse_variables() noexcept { state_->reuse = Reuse::always; }
  Reuse reuse() const noexcept { return state_->reuse; }
  /// The path, "tower/layer1", without the name scope's suffix.
  const std::string& path() const noexcept { return state_->path; }
  /// The scope, to open it again.
  VariableScopePath reopened() const { return VariableScopePath(*state_); }

 private:
  static std::shared_ptr<VariableScopeState> nested(Graph& graph, std::string_view name);
  static ScopeGuard enter(GraphStore& graph, std::string_view name, const std::shared_ptr<VariableScopeState>& state,
                          const VariableScopeOptions& options, std::source_location where);

  GraphReference graph_;
  std::shared_ptr<VariableScopeState> state_;
  ScopeGuard guard_;
};

/// The variable of that name in the graph's current variable scope; outside all scopes, a new variable of that name.
template <Element T>
Variable<T> get_variable(Graph& graph, std::string_view name, const Shape& shape,
                         const GetVariableOptions& options = {}, const At& at = {}) {
  return detail::any_get_variable(*graph.store(), *detail::variable_scope_of(*graph.store()), name, dtype_of<T>, shape,
                                  options, at)
      .template as<T>();
}

}  // namespace dflow
