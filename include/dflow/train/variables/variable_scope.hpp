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

/// Whether a variable that is asked for by name may be, or must be, there already.
enum class Reuse : std::uint8_t {
  inherit,    ///< as in the scope around; outside of all of them: never
  never,      ///< it is made; AlreadyExists if it is there
  always,     ///< it is there; NotFound if it is not
  automatic,  ///< it is made if it is not there
};

struct VariableScopeOptions {
  Reuse reuse = Reuse::inherit;
  /// Of variables that are given none; empty: that of the scope around, which outside of all is `init::glorot_uniform`.
  Initializer initializer = {};
  /// The same; outside of all there is none.
  Regularizer regularizer = {};
  /// Of `partitioned_variable` that is given none, the same.
  Partitioner partitioner = {};
  /// float16, bfloat16 or float32: `Dense`, `Convolution2D` and recurrent cells inside make float variables, and cast
  /// them and their inputs to this where they use them; results have the inputs' element type. Layers with double
  /// inputs stay as they are. Invalid: as in the scope around; outside of all layers compute in the inputs' element
  /// type.
  DType compute = DType::invalid;
};

struct GetVariableOptions {
  Initializer initializer = {};  ///< empty: the scope's
  /// Empty: the scope's, if the variable is trained. What it gives is in the collection "regularization_losses" once,
  /// however often the variable is shared.
  Regularizer regularizer = {};
  bool trainable = true;
  std::string_view slice = {};  ///< as in VariableOptions; one that is there is the same slice
};

/// What variables are called and shared by inside of a variable scope.
struct VariableScopeState final : ScopeExtension {
  std::string path;  ///< of its variables: "" or "tower/layer1"
  Reuse reuse = Reuse::never;
  Initializer initializer = init::glorot_uniform();
  Regularizer regularizer = {};
  Partitioner partitioner = {};
  DType compute = DType::invalid;  ///< of layers; invalid: their inputs'
  /// It is around all variable scopes: what is made in none of these is named as if it were not there.
  bool is_outermost = false;
  /// Names of layers and scopes inside that were taken since it was opened.
  std::set<std::string, std::less<>> taken = {};

  std::string path_of(std::string_view name) const;
  /// The name, or the first of "name_1", "name_2", ... that was not taken since the scope was opened: the same for the
  /// same calls in each opening.
  std::string take_name(std::string_view name);
};

namespace detail {

/// A variable that was looked for by name.
struct FoundVariable {
  AnyVariable variable;
  AnyOutput regularization_loss;  ///< of one that was made, if there is any
  bool is_new = false;
};

/// Makes the variable "prefix + name" in no collection, its first value, and what the regularizer gives. Errors:
/// InvalidArgument for a name that is taken and for what the functions give.
FoundVariable make_variable(GraphStore& graph, std::string_view prefix, std::string_view name, DType dtype,
                            const Shape& shape, const Initializer& initializer, const Regularizer& regularizer,
                            const At& at, std::string_view slice = {});
/// The variable of that path within the scope, made where the scope says so, and in no collection.
FoundVariable find_or_make_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name,
                                    DType dtype, const Shape& shape, const GetVariableOptions& options, const At& at);
/// The same in the collections "variables", "trainable_variables" and "regularization_losses", if it is new.
AnyVariable any_get_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, DType dtype,
                             const Shape& shape, const GetVariableOptions& options, const At& at);
/// One that is there. Errors: NotFound.
AnyVariable existing_variable(GraphStore& graph, const VariableScopeState& scope, std::string_view name, const At& at);
/// The graph's current one, or one outside of all.
std::shared_ptr<VariableScopeState> variable_scope_of(GraphStore& graph);
/// The graph's current one; null outside of all.
std::shared_ptr<VariableScopeState> open_variable_scope(const GraphStore& graph);

}  // namespace detail

/// A scope that can be opened again after its block, from anywhere: with its path, reuse, initializer and regularizer.
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

/// While it lives, variables of its graph are made and found by name below its own: TensorFlow's `variable_scope` and
/// `get_variable`. A model that is a function of its input is built twice with one set of variables so:
///
/// ```cpp
/// auto tower = [](df::Output<float> x, df::Graph& graph, df::Reuse reuse) {
///   df::VariableScope scope(graph, "tower", {.reuse = reuse});
///   auto w = scope.get_variable<float>("w", {784, 100});   // "tower/w"
///   return df::dense(df::tanh(df::matmul(x, w)), 10);      // "tower/dense/kernel" and "tower/dense/bias"
/// };
/// auto trained = tower(images, graph, df::Reuse::never), tested = tower(test_images, graph, df::Reuse::always);
/// ```
/// Names of variables are those of the variable scopes around each other, whatever the name scopes; nodes are in the
/// name scope of that name, made unique: "tower/MatMul" and "tower_1/MatMul". A variable is of this graph if it has
/// that name, whoever made it, also one that was imported or restored from a file.
///
/// Layers inside, as functions and at the first calls of objects, find their variables so too. The name of a layer is
/// that of its options, with a suffix where it comes again since the scope was opened ("dense", "dense_1"), so that the
/// same calls in a scope that is opened again are the same layers; or exactly that of the call's `At`, if that has one.
/// A regulariser that a layer is not given, and an initializer that it is given empty, are the scope's.
///
/// Thread safety: belongs to the thread that builds the graph.
/// Errors: AlreadyExists, NotFound by the scope's `Reuse`; InvalidArgument, with both, where a variable that is there
/// has another element type or shape than is asked for, and for a `compute` that is none of those.
class [[nodiscard]] VariableScope {
 public:
  /// Inside of the graph's current one. Without a name it has the path of that one, and names no nodes.
  VariableScope(Graph& graph, std::string_view name, const VariableScopeOptions& options = {},
                std::source_location where = std::source_location::current());
  /// Opens one again, wherever it is. What `options` do not say is as it was there.
  VariableScope(Graph& graph, const VariableScopePath& again, const VariableScopeOptions& options = {},
                std::source_location where = std::source_location::current());
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  /// The variable of that name in this scope.
  template <Element T>
  Variable<T> get_variable(std::string_view name, const Shape& shape, const GetVariableOptions& options = {},
                           const At& at = {}) const {
    return detail::any_get_variable(*graph_, *state_, name, dtype_of<T>, shape, options, at).template as<T>();
  }
  /// One that is there, of whatever shape and whatever the scope says of reuse. Errors: NotFound.
  template <Element T>
  Variable<T> existing_variable(std::string_view name, const At& at = {}) const {
    return detail::existing_variable(*graph_, *state_, name, at).template as<T>();
  }

  /// From here on, and in scopes opened inside from here on, variables are not made.
  void reuse_variables() noexcept { state_->reuse = Reuse::always; }
  Reuse reuse() const noexcept { return state_->reuse; }
  /// "tower/layer1", without the name scope's suffix.
  const std::string& path() const noexcept { return state_->path; }
  /// To open it again.
  VariableScopePath reopened() const { return VariableScopePath(*state_); }

 private:
  static std::shared_ptr<VariableScopeState> nested(Graph& graph, std::string_view name);
  static ScopeGuard enter(GraphStore& graph, std::string_view name, const std::shared_ptr<VariableScopeState>& state,
                          const VariableScopeOptions& options, std::source_location where);

  GraphStore* graph_;
  std::shared_ptr<VariableScopeState> state_;
  ScopeGuard guard_;
};

/// The variable of that name in the graph's current variable scope; outside of all, a new one of that name.
template <Element T>
Variable<T> get_variable(Graph& graph, std::string_view name, const Shape& shape,
                         const GetVariableOptions& options = {}, const At& at = {}) {
  return detail::any_get_variable(*graph.store(), *detail::variable_scope_of(*graph.store()), name, dtype_of<T>, shape,
                                  options, at)
      .template as<T>();
}

}  // namespace dflow
