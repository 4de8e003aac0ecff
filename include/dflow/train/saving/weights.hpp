#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/saving/weight_layouts.hpp>

#include <concepts>
#include <initializer_list>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace dflow::train {

/// A variable and the tensor that becomes its value.
struct VariableValue {
  AnyVariable variable;
  AnyTensor value;
};

/// Sets variables to tensors, in one step, wherever the variables are. A part of a partitioned variable takes a tensor
/// of its own shape, or its slice of a tensor of the whole shape.
///
/// ```cpp
/// df::train::assign(session, {{hidden.kernel(), weights}, {hidden.bias(), df::Tensor<float>::zeros({64})}});
/// ```
/// Each call adds nodes to the graph: to assign in a loop, build `variable.assign` of a placeholder once.
///
/// Thread safety: one thread at a time, and no other thread builds. Blocks.
/// Errors: InvalidArgument that lists all values of another element type or shape than their variable, and variables
/// that are empty, of another graph than the session's, or there twice; then no variable is set. Errors of a step.
void assign(Session& session, const std::vector<VariableValue>& values,
            std::source_location where = std::source_location::current());

/// The names of the tensors that a variable is made of: "fc1.weight", or several in braces.
///
/// Thread safety: a value type.
class TensorNames {
 public:
  template <std::convertible_to<std::string> S>
  TensorNames(const S& name) : names_{name} {}
  TensorNames(std::initializer_list<std::string> names) : names_(names) {}

  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
};

/// A variable and where its value comes from.
struct Weight {
  AnyVariable variable;
  TensorNames names;
  WeightLayout layout = {};  ///< empty: there is one tensor, and it is the value
};

struct WeightOptions {
  /// Converts between float, double, float16 and bfloat16; false: another element type than the variable's is an error.
  /// A number that is too large for the variable's type is an error all the same.
  bool converts_floats = false;
  /// A variable keeps its value if the source lacks a tensor of it; false: that is an error.
  bool allows_missing = false;
  /// The source may have tensors that are not named; false: that is an error.
  bool allows_unused = true;
};

/// Names of tensors, but for `kept`.
struct WeightReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;  ///< named, and not in the source
  std::vector<std::string> unused;   ///< in the source, and not named
  std::vector<std::string> kept;     ///< the trainable variables of the graph that keep their values
};

/// Sets variables to tensors of others, by a map of names. All is read and checked before any variable is set.
///
/// ```cpp
/// auto file = df::open_saved_tensors(files, "model.safetensors");
/// auto report = df::train::load_weights(session, *file,
///                                       {{hidden.kernel(), "fc1.weight", df::train::layout::transposed()},
///                                        {hidden.bias(), "fc1.bias"}});
/// ```
/// All parts of a partitioned variable take the same name. Memory: the tensors that are named, twice if they have a
/// layout. Each call adds nodes to the graph.
///
/// Thread safety: as `assign`. Blocks.
/// Errors: one error that lists all that is wrong, a line each, with the source, the tensor, the variable and both
/// shapes; then no variable is set. A line says so if a transpose would fit. Its code is that of the first line:
/// NotFound for a missing tensor, InvalidArgument for what does not fit, else the code of `from.read`. Errors of a
/// step.
WeightReport load_weights(Session& session, const SavedTensors& from, const std::vector<Weight>& weights,
                          const WeightOptions& options = {},
                          std::source_location where = std::source_location::current());

}  // namespace dflow::train
