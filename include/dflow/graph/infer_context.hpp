#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/graph/op_args.hpp>

#include <optional>
#include <span>
#include <string>

namespace dflow {

/// The inputs of the node being built, or of the step being run, as a shape function sees them: the inputs' shapes,
/// and the values of inputs that are known. The default reads nothing but shapes.
///
/// Thread safety: const; used in the thread that builds the node or runs the step.
class InputValues {
 public:
  virtual ~InputValues() = default;
  /// The tensor on input `i` if it is known already, else null. The pointer lives as long as the context.
  virtual const AnyTensor* value(int i) const { return static_cast<void>(i), nullptr; }
  /// The one-dimensional integer tensor on input `i` read as a shape, as far as it is known.
  virtual std::optional<PartialShape> value_as_shape(int i) const { return static_cast<void>(i), std::nullopt; }
  /// The element type of the variable that the handle on input `i` refers to, as far as it is known, else invalid.
  virtual DType variable_dtype(int i) const { return static_cast<void>(i), DType::invalid; }
};

/// The argument of every shape function: checks the inputs, then sets one shape per output.
///
/// Thread safety: used by one thread.
/// Errors: `fail` throws InvalidArgument with the op, its input shapes and the line of the user's program.
class InferContext {
 public:
  InferContext(const Node& node, std::span<const PartialShape> inputs, std::span<const DType> input_dtypes,
               const InputValues& values, std::span<PartialShape> outputs)
      : node_(node), inputs_(inputs), input_dtypes_(input_dtypes), values_(values), outputs_(outputs) {}

  const Node& node() const noexcept { return node_; }
  int num_inputs() const noexcept { return static_cast<int>(inputs_.size()); }
  int num_outputs() const noexcept { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const noexcept { return inputs_[static_cast<std::size_t>(i)]; }
  DType input_dtype(int i) const noexcept { return input_dtypes_[static_cast<std::size_t>(i)]; }
  DType type_arg(int i) const noexcept { return node_.types[static_cast<std::size_t>(i)]; }
  template <class Op>
  const typename Op::Attrs& attrs() const {
    return node_.template attrs_as<Op>();
  }

  const AnyTensor* value(int i) const { return values_.value(i); }
  /// A known 1-D (or scalar) int32 or int64 input as integers; empty optional if it is not known yet.
  std::optional<std::vector<std::int64_t>> value_as_integers(int i) const;
  /// A 1-D integer input read as a shape, as far as it is known; fails if it is known and no shape.
  std::optional<PartialShape> value_as_shape(int i) const;
  /// As in `InputValues`. A handle's shape is the shape of the variable's value.
  DType variable_dtype(int i) const { return values_.variable_dtype(i); }

  void set_output(int i, PartialShape shape) { outputs_[static_cast<std::size_t>(i)] = std::move(shape); }

  /// The input's shape if it may have `rank` dimensions (all of them unknown if its rank is), else fails.
  PartialShape with_rank(int i, int rank) const;
  PartialShape with_rank_at_least(int i, int rank) const;
  /// The shape that joins the facts of both shapes; fails if they contradict each other.
  PartialShape merge(const PartialShape& a, const PartialShape& b) const;
  std::int64_t merge_dim(std::int64_t a, std::int64_t b) const;
  /// `axis` in [-rank, rank) made non-negative, else fails.
  int normalize_axis(std::int64_t axis, int rank) const;

  [[noreturn]] void fail(const std::string& message) const;

  /// Runs the op's shape function. An InvalidArgument that it throws by itself becomes one of `fail`.
  void infer();

 private:
  const Node& node_;
  std::span<const PartialShape> inputs_;
  std::span<const DType> input_dtypes_;
  const InputValues& values_;
  std::span<PartialShape> outputs_;
};

}  // namespace dflow
