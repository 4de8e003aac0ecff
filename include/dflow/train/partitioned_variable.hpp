#pragma once

#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/data_flow/embedding.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/variables/partitioners.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

struct PartitionedVariableOptions {
  /// The number of parts and their dimension; empty: the partitioner of the graph's current variable scope, or one
  /// part if there is none.
  Partitioner partitioner = {};
  /// Called once for each part, `of_part`. An initializer with a seed gives all parts the same numbers.
  Initializer initializer = init::uniform(-0.05, 0.05);
  /// The name scope of the parts "part_0", "part_1" and so on, and the name in checkpoints.
  std::string_view name = "table";
  bool trainable = true;
};

/// A variable in parts. Each part is a variable of its own, and the parts follow each other along one dimension.
///
/// Thread safety: a value type.
template <Element T>
class PartitionedVariable {
 public:
  PartitionedVariable() = default;
  PartitionedVariable(std::vector<Variable<T>> parts, const Shape& shape, int axis)
      : parts_(std::move(parts)), shape_(shape), axis_(axis) {}

  /// The shape of the whole variable.
  const Shape& shape() const noexcept { return shape_; }
  /// Errors: InvalidArgument without parts.
  std::string name() const {
    if (parts_.empty()) throw_error(Status::invalid_argument("an empty PartitionedVariable has no name"));
    return parts_[0].any_variable().whole_name();
  }
  /// The dimension of the parts; 0 if there is one part.
  int axis() const noexcept { return axis_; }

  const std::vector<Variable<T>>& parts() const noexcept { return parts_; }
  std::size_t size() const noexcept { return parts_.size(); }
  const Variable<T>& operator[](std::size_t i) const { return parts_[i]; }
  auto begin() const noexcept { return parts_.begin(); }
  auto end() const noexcept { return parts_.end(); }

  /// The whole as one edge, put together in each step. Gradients through the edge are gradients of the parts.
  Output<T> as_tensor(const At& at = {}) const {
    if (parts_.size() == 1) return parts_[0];
    return concat(std::vector<Output<T>>(parts_.begin(), parts_.end()), axis_, at);
  }

 private:
  std::vector<Variable<T>> parts_;
  Shape shape_;
  int axis_ = 0;
};

namespace detail {

/// The parts of a variable, and their dimension.
struct MadeParts {
  std::vector<AnyVariable> parts;
  int axis = 0;
};
MadeParts any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape,
                                   const PartitionedVariableOptions& options, const At& at);
/// Makes `num_parts` parts along the first dimension. Errors: InvalidArgument unless there are so many rows.
MadeParts any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape, std::int64_t num_parts,
                                   const PartitionedVariableOptions& options, const At& at);

template <Element T>
PartitionedVariable<T> typed_parts(const MadeParts& made, const Shape& shape) {
  std::vector<Variable<T>> parts;
  parts.reserve(made.parts.size());
  for (const AnyVariable& part : made.parts) parts.push_back(part.as<T>());
  return {std::move(parts), shape, made.axis};
}

}  // namespace detail

/// A variable of shape `shape` in parts "table/part_0", "table/part_1" and so on. The partitioner gives the number of
/// parts along one dimension. The first (length % parts) parts are longer by one. Inside
/// `graph.device(train::replica_device(cluster))` the parts lie on different parameter servers. Inside a
/// `VariableScope` the scope finds or makes the parts, under exactly this name. A `Saver` saves them as one tensor
/// "table".
///
/// ```cpp
/// auto w = df::partitioned_variable<float>(graph, {4096, 1024}, {.partitioner = df::fixed_size_partitioner(4, 1)});
/// auto y = df::matmul(x, w.as_tensor());
/// ```
///
/// Errors: InvalidArgument, naming the variable, for a scalar and for an empty initializer. InvalidArgument also if
/// the partitioner does not give one number for each dimension, gives a number below 1 or above the dimension's
/// length, or makes parts along two dimensions.
template <Element T>
PartitionedVariable<T> partitioned_variable(Graph& graph, const Shape& shape,
                                            const PartitionedVariableOptions& options = {}, const At& at = {}) {
  return detail::typed_parts<T>(detail::any_partitioned_variable(*graph.store(), dtype_of<T>, shape, options, at),
                                shape);
}
/// The same with `num_parts` parts along the first dimension: rows of a table, for `embedding_lookup`.
///
/// Errors: InvalidArgument unless the shape has rows, and 1 <= num_parts <= rows; also for a partitioner.
template <Element T>
PartitionedVariable<T> partitioned_variable(Graph& graph, const Shape& shape, std::int64_t num_parts,
                                            const PartitionedVariableOptions& options = {}, const At& at = {}) {
  return detail::typed_parts<T>(
      detail::any_partitioned_variable(*graph.store(), dtype_of<T>, shape, num_parts, options, at), shape);
}

/// `embedding_lookup` of the rows of a table in parts. Errors also: InvalidArgument if the parts are not rows.
template <AllowedFor<Gather> T, detail::ArgumentOf<IndexTypes> Ids>
Output<T> embedding_lookup(const PartitionedVariable<T>& table, const Ids& ids,
                           PartitionStrategy strategy = PartitionStrategy::mod, const At& at = {}) {
  if (table.axis() != 0) {
    throw_error(Status::invalid_argument(str_cat("embedding_lookup: '", table.name(), "' lies in parts along axis ",
                                                 table.axis(), ", and must along its rows"))
                    .with_location(at.where));
  }
  return embedding_lookup(table.parts(), ids, strategy, at);
}

}  // namespace dflow
