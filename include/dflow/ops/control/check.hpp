#pragma once

#include <dflow/op/build.hpp>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {
/// Fails unless `listed`, TensorFlow's attribute of that name, is empty or has the element types of all inputs but the
/// first.
void require_listed_types(InferContext& context, const std::vector<DType>& listed, std::string_view attribute);
}  // namespace detail

/// Fails the step unless the condition holds; the error prints the first `summarize` elements of each of the other
/// inputs.
struct Assert : StatefulOp<"Assert"> {
  struct Attrs {
    std::int64_t summarize = 3;
    std::vector<DType> T = {};  ///< of the printed inputs, as in TensorFlow's graphs, or none
  };
  using Inputs = In<bool, AnyList>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The input itself, its buffer shared; fails the step if an element is not finite.
struct CheckNumerics : StandardOp<"CheckNumerics", FloatTypes> {
  struct Attrs {
    std::string message;
  };
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Passes its input on if the input has an allowed shape: x -> x.
struct EnsureShape : StandardOp<"EnsureShape", AllTypes> {
  struct Attrs {
    PartialShape shape;
  };
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// condition: a scalar. A node waits for the check if it is built in a scope of `graph.control_dependencies({check})`,
/// or if it reads its input through `with_dependencies`.
///
/// ```cpp
/// auto positive = df::assert_that(df::reduce_min(x) > 0.0f, {x, df::constant(graph, "x must be positive")});
/// auto y = df::with_dependencies({positive}, df::log(x));
/// ```
/// Errors: InvalidArgument if the condition is not a scalar; when the step runs, if it is false, with the first
/// elements of `data`.
Operation assert_that(const Output<bool>& condition, std::span<const AnyOutput> data, Assert::Attrs attrs = {},
                      const At& at = {});
inline Operation assert_that(const Output<bool>& condition, std::initializer_list<AnyOutput> data,
                             Assert::Attrs attrs = {}, const At& at = {}) {
  return assert_that(condition, std::span<const AnyOutput>(data.begin(), data.size()), attrs, at);
}

/// x; its gradient is checked alike.
///
/// Errors: InvalidArgument when the step runs, if x holds a NaN or an infinity; the error says which, after `message`.
template <AllowedFor<CheckNumerics> T>
Output<T> check_numerics(const Output<T>& x, std::string message, const At& at = {}) {
  return apply<CheckNumerics>(x, {.message = std::move(message)}, at);
}

/// x; nodes that read the result know that its shape fits `shape`.
///
/// Errors: InvalidArgument if x cannot have an allowed shape, or does not have one when the step runs.
template <Element T>
Output<T> ensure_shape(const Output<T>& x, const PartialShape& shape, const At& at = {}) {
  return apply<EnsureShape>(x, {.shape = shape}, at);
}

}  // namespace dflow
