#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/op/build.hpp>

#include <concepts>
#include <initializer_list>
#include <source_location>
#include <type_traits>
#include <utility>

namespace dflow {

/// A tensor that is part of the graph.
struct Const : StandardOp<"Const", AllTypes> {
  struct Attrs {
    AnyTensor value;
  };
  using Inputs = In<>;
  static constexpr OpRole role = OpRole::constant;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static constexpr bool gradient_stops = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// A tensor that the caller feeds in each step.
struct Placeholder : StatefulOp<"Placeholder", AllTypes> {
  struct Attrs {
    PartialShape shape;
  };
  using Inputs = In<>;
  static constexpr OpRole role = OpRole::placeholder;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// The input, unless the caller feeds another tensor of an allowed shape in its place.
struct PlaceholderWithDefault : StandardOp<"PlaceholderWithDefault", AllTypes> {
  struct Attrs {
    PartialShape shape;
  };
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The shape of a placeholder: `{df::dynamic, 784}`. A list that is not a shape is InvalidArgument; the error names
/// the line of the list.
class PlaceholderShape {
 public:
  PlaceholderShape() noexcept = default;
  PlaceholderShape(const Shape& shape) noexcept : shape_(shape) {}         // NOLINT(google-explicit-constructor)
  PlaceholderShape(const PartialShape& shape) noexcept : shape_(shape) {}  // NOLINT(google-explicit-constructor)
  PlaceholderShape(std::initializer_list<std::int64_t> dims,
                   std::source_location where = std::source_location::current());

  const PartialShape& shape() const noexcept { return shape_; }

 private:
  PartialShape shape_;
};

namespace detail {
/// Throws the status, with the place, unless it is ok.
void require_constant(const Status& status, const At& at);
AnyOutput any_placeholder(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at);
}  // namespace detail

/// The edge that carries `value`; the graph shares the tensor's elements, which must not be written any more.
///
/// ```cpp
/// auto three = df::constant(graph, 3.0f);
/// auto matrix = df::constant<float>(graph, {{1, 2}, {3, 4}});
/// auto same = df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4}));
/// ```
/// Errors: InvalidArgument if the tensor is empty, as a default-constructed one is. A tensor of shape {0} is not
/// empty.
template <Element T>
Output<T> constant(Graph& graph, const Tensor<T>& value, const At& at = {}) {
  return Output<T>::unchecked(detail::any_constant(*graph.store(), value, at));
}
/// A scalar of its own type. A call that names a type uses the next overload, so braces around one number are a list.
template <int&... no_type_is_named, Element T>
Output<T> constant(Graph& graph, T value, const At& at = {}) {
  return Output<T>::unchecked(detail::any_constant(*graph.store(), Tensor<T>(std::move(value)), at));
}
/// A scalar of a named type: `constant<float>(graph, 2)`.
template <Element T, class V>
  requires std::convertible_to<V, T>
Output<T> constant(Graph& graph, V value, const At& at = {}) {
  return Output<T>::unchecked(detail::any_constant(*graph.store(), Tensor<T>(static_cast<T>(std::move(value))), at));
}
/// The elements as they lie, a pair of braces per dimension: `constant<float>(graph, {{1, 2}, {3, 4}})` is a [2, 2]
/// matrix.
///
/// Errors: InvalidArgument if rows side by side have different shapes, or T cannot hold a number.
template <Element T>
Output<T> constant(Graph& graph, std::initializer_list<NestedElements<std::type_identity_t<T>>> elements,
                   const At& at = {}) {
  const NestedElements<T> nested(elements);
  detail::require_constant(nested.status(), at);
  return Output<T>::unchecked(detail::any_constant(*graph.store(), Tensor<T>::of_elements(nested), at));
}
/// A tensor with an element type that is known at run time only.
inline AnyOutput constant(Graph& graph, const AnyTensor& value, const At& at = {}) {
  return detail::any_constant(*graph.store(), value, at);
}
/// The same for gradients and passes, which build on a GraphStore.
inline AnyOutput constant(GraphStore& graph, const AnyTensor& value, const At& at = {}) {
  return detail::any_constant(graph, value, at);
}
template <class V>
  requires(std::is_convertible_v<V, std::string_view> && !Element<V>)
Output<std::string> constant(Graph& graph, const V& text, const At& at = {}) {
  return Output<std::string>::unchecked(
      detail::any_constant(*graph.store(), Tensor<std::string>(std::string(std::string_view(text))), at));
}

/// An edge; the caller feeds a tensor for it in each step. `shape` may leave dimensions open: `{df::dynamic, 784}`.
///
/// Errors: InvalidArgument when a step runs without feeding it, or feeds a tensor that does not fit the shape.
template <Element T>
Output<T> placeholder(Graph& graph, const PlaceholderShape& shape = PartialShape::unknown(), const At& at = {}) {
  return Output<T>::unchecked(detail::any_placeholder(*graph.store(), dtype_of<T>, shape.shape(), at));
}

/// An edge that carries `value` in each step that feeds it no other tensor. `shape` is what a feed must fit.
///
/// ```cpp
/// auto keep_prob = df::placeholder_with_default(df::constant(graph, 1.0f), {});  // training feeds 0.5f
/// ```
/// Errors: InvalidArgument if the value does not fit the shape, or when a step feeds a tensor that does not.
template <AllowedFor<PlaceholderWithDefault> T>
Output<T> placeholder_with_default(const Output<T>& value, const PlaceholderShape& shape = PartialShape::unknown(),
                                   const At& at = {}) {
  return apply<PlaceholderWithDefault>(value, {.shape = shape.shape()}, at);
}

}  // namespace dflow
