#pragma once

#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/saving/saver.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace dflow {
class NodeList;
}

namespace dflow::train {

struct MovingAverageOptions {
  /// An edge [], for example the global step. Makes averages of the first updates quicker: the decay is at most
  /// (1 + n) / (10 + n).
  std::optional<Output<std::int64_t>> num_updates = {};
  /// Averages of edges begin with 0. This option divides them by 1 - decay^updates, as Adam does (Kingma and Ba 2014,
  /// section 3). It leaves averages of variables as they are, since they begin with the initial values of the
  /// variables.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";  ///< of an average: "w/<name>"
};

/// average -= (1 - decay) * (average - value), for variables and edges of float types: TensorFlow's
/// ExponentialMovingAverage. Averaged variables are often better than the variables of the last step.
///
/// ```cpp
/// df::train::ExponentialMovingAverage averages(0.999, {.num_updates = global_step});
/// {
///   auto after = graph.control_dependencies({train});
///   train = averages.apply(df::trainable_variables(graph));
/// }
/// // Restores "w/ExponentialMovingAverage" to w.
/// df::train::Saver averaged(graph, averages.variables_to_restore(graph));
/// ```
/// A Half or BFloat16 average is moved through a float copy, "w/<name>/master", as optimizers do: most moves are less
/// than its last digit.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument for a decay outside [0, 1), for values that are no floats, for edges without a known shape,
/// for the average of a value that `apply` was not given, and for values of another graph than the graph of the first
/// `apply` while the latter exists.
class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(double decay, MovingAverageOptions options = {},
                                    std::source_location where = std::source_location::current());

  /// An operation that moves the averages of the variables once, by their values at the time when it runs. Missing
  /// averages are made, as variables that are not trained.
  Operation apply(std::span<const AnyVariable> variables, const At& at = {});
  Operation apply(const std::vector<AnyVariable>& variables, const At& at = {}) {
    return apply(std::span(variables), at);
  }
  Operation apply_to_edges(std::span<const AnyOutput> edges, const At& at = {});
  template <Element T>
  Operation apply(const Output<T>& edge, const At& at = {}) {
    const AnyOutput& any = edge;
    return apply_to_edges(std::span(&any, 1), at);
  }

  AnyVariable average(const AnyVariable& variable) const;
  template <Element T>
  Variable<T> average(const Variable<T>& variable) const {
    return average(variable.any_variable()).template as<T>();
  }
  template <Element T>
  Variable<T> average(const Output<T>& edge) const {
    return average_of_edge(edge).template as<T>();
  }
  AnyVariable average_of_edge(const AnyOutput& edge) const;

  /// All variables, under the names that a model for use is restored from: a variable with an average gets the
  /// average, any other gets its own value. Parts of a variable have the name of the whole, and are slices of it.
  SavedVariables variables_to_restore(const Graph& graph) const;

 private:
  struct Average {
    Endpoint of;
    bool is_of_variable;
    AnyVariable variable;
    AnyVariable biased, count;  ///< with zero_debias; float for 16-bit values
    AnyVariable master;         ///< the float copy of a 16-bit average without zero_debias
  };

  /// Keeps averages of one graph.
  void enter_graph(GraphStore& graph, const At& at);
  const Average* find(const AnyOutput& of) const;
  Average& average_for(const AnyOutput& value, const AnyVariable* variable);
  Operation moved(Average& average, const AnyOutput& value) const;
  /// 1 - decay, in element type `dtype`.
  AnyOutput weight(GraphStore& graph, DType dtype) const;

  double decay_;
  MovingAverageOptions options_;
  std::weak_ptr<const NodeList> graph_;  ///< of the averages; not an address, as a new graph may get the same one
  std::vector<Average> averages_;
};

}  // namespace dflow::train
