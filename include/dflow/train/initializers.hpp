#pragma once

#include <dflow/graph/output.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// A part of a partitioned variable: elements [begin, begin + shape) of the whole.
struct VariablePart {
  Shape shape;
  Shape whole;
  std::vector<std::int64_t> begin;  ///< one per dimension
};

/// Makes the initial value of a variable: an edge of its element type and shape. It is any function of
/// `(GraphStore& graph, DType dtype, const Shape& shape)`. A function of a `const VariablePart&` in place of the shape
/// also learns where a part lies in its whole variable.
class Initializer {
 public:
  Initializer() = default;
  Initializer(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Initializer> &&
             std::is_invocable_r_v<AnyOutput, F&, GraphStore&, DType, const Shape&>)
  Initializer(F of_shape) {  // NOLINT(google-explicit-constructor)
    if (is_empty(of_shape)) return;
    of_part_ = [of_shape = std::move(of_shape)](GraphStore& graph, DType dtype, const VariablePart& part) {
      return of_shape(graph, dtype, part.shape);
    };
  }
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Initializer> &&
             !std::is_invocable_v<F&, GraphStore&, DType, const Shape&> &&
             std::is_invocable_r_v<AnyOutput, F&, GraphStore&, DType, const VariablePart&>)
  Initializer(F of_part) {  // NOLINT(google-explicit-constructor)
    if (!is_empty(of_part)) of_part_ = std::move(of_part);
  }

  explicit operator bool() const noexcept { return of_part_ != nullptr; }
  /// The initial value of a whole variable.
  AnyOutput operator()(GraphStore& graph, DType dtype, const Shape& shape) const {
    return of_part_(graph, dtype, {shape, shape, std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()))});
  }
  AnyOutput of_part(GraphStore& graph, DType dtype, const VariablePart& part) const {
    return of_part_(graph, dtype, part);
  }

 private:
  /// Whether the function is a null pointer or an empty std::function.
  template <class F>
  static bool is_empty(const F& function) {
    if constexpr (requires { static_cast<bool>(function == nullptr); }) {
      return function == nullptr;
    } else {
      return false;
    }
  }

  std::function<AnyOutput(GraphStore&, DType, const VariablePart&)> of_part_;
};

/// Initializers for the variables of layers. A seed of 0 is drawn from the graph's seed.
///
/// Fans: the last two dimensions of a shape are its inputs and outputs. The dimensions before (the window of a filter)
/// multiply both. A part of a variable has the fans of the whole variable.
namespace init {

Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer uniform(double minval, double maxval, std::uint64_t seed = 0);
Initializer normal(double stddev, std::uint64_t seed = 0);
Initializer truncated_normal(double stddev, std::uint64_t seed = 0);
/// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Initializer glorot_uniform(std::uint64_t seed = 0);
/// Truncated normal of variance 2 / fan_in (He et al. 2015, arXiv:1502.01852).
Initializer he_normal(std::uint64_t seed = 0);
/// The tensor; a part of a variable gets the same part of it. Errors, of the variable: InvalidArgument for another
/// element type or shape.
Initializer value(const AnyTensor& tensor);

}  // namespace init

}  // namespace dflow
