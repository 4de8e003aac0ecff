#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/body_value.hpp>
#include <dflow/ops/control/tensor_list.hpp>

#include <cstdint>
#include <utility>

namespace dflow {

namespace detail {
/// The shape of elements as a constant, int32 [rank], with -1 for an unknown extent; a scalar -1 if the rank is
/// unknown.
AnyOutput shape_to_ask_for(GraphStore& graph, const PartialShape& shape);
/// The same for the elements of `list`, for `op`. Errors: InvalidArgument for an empty edge.
AnyOutput shape_to_ask_for(const AnyOutput& list, std::string_view op, const At& at);
AnyOutput any_array(const AnyOutput& size, const PartialShape& element_shape, const At& at);
AnyOutput any_array_read(const AnyOutput& list, const AnyOutput& index, DType dtype, const At& at);
AnyOutput any_array_stack(const AnyOutput& list, DType dtype, const At& at);
AnyOutput any_array_gather(const AnyOutput& list, const AnyOutput& indices, DType dtype, const At& at);
AnyOutput any_array_scatter(const AnyOutput& x, const AnyOutput& indices, const At& at);
AnyOutput any_array_concat(const AnyOutput& list, DType dtype, const At& at);
AnyOutput any_array_split(const AnyOutput& x, const AnyOutput& lengths, const At& at);
}  // namespace detail

/// A number of tensors by position that a loop reads and writes (TensorFlow's TensorArray). An array is a value: a
/// function that changes it returns a new array. Go on with the new array, as with a variable of a loop.
/// Differentiable any number of times.
///
/// ```cpp
/// auto [i, squares] = df::while_loop([&](auto i, auto) { return i < 5; },
///                                    [&](auto i, auto squares) { return std::tuple{i + 1, squares.write(i, x * x)}; },
///                                    std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, 5)});
/// auto all = squares.stack();  // [5, ...]
/// ```
/// An element that was not written is zero if the shape of elements is declared. Writing does not copy the other
/// elements if nobody else has the array.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument when the step runs: for a position that the array does not have, for an unwritten element
/// of unknown shape, and for stacked elements that differ in shape. InvalidArgument when the graph is built: for an
/// element that cannot have the declared shape.
template <Element T>
class TensorArray {
 public:
  using element_type = T;

  TensorArray() = default;
  /// An array of `size` elements, each of a shape that `element_shape` allows.
  TensorArray(Graph& graph, std::int32_t size, const PartialShape& element_shape = PartialShape::unknown(),
              const At& at = {})
      : TensorArray(detail::any_array(detail::any_constant(*graph.store(), Tensor<std::int32_t>(size), at),
                                      element_shape, at)) {}
  /// size: [].
  explicit TensorArray(const Output<std::int32_t>& size, const PartialShape& element_shape = PartialShape::unknown(),
                       const At& at = {})
      : TensorArray(detail::any_array(size, element_shape, at)) {}
  /// The array that an edge carries. Precondition: the edge is a list of elements of this type.
  explicit TensorArray(AnyOutput list) : list_(std::move(list)) {}

  /// x: [n, ...] -> an array of its n rows, which are not copied.
  static TensorArray unstack(const Output<T>& x, const At& at = {}) {
    return TensorArray(build<TensorListFromTensor>({x}, {}, at));
  }
  /// x: [n, ...], indices: [n], not negative -> an array: its element indices[i] is row i, or the sum of several rows.
  static TensorArray scatter(const Operand<std::int32_t>& indices, const Operand<T>& x, const At& at = {}) {
    return TensorArray(detail::any_array_scatter(x.beside(indices), indices.beside(x), at));
  }
  /// x: [n, ...], lengths: [m] with the sum n -> an array of m elements [lengths[i], ...]: the rows of x in order,
  /// which are not copied. The inverse of `concat`. Errors: InvalidArgument when the step runs, for a negative length,
  /// and for lengths with another sum.
  static TensorArray split(const Operand<T>& x, const Operand<std::int64_t>& lengths, const At& at = {}) {
    return TensorArray(detail::any_array_split(x.beside(lengths), lengths.beside(x), at));
  }
  static TensorArray split(const Operand<T>& x, const Output<std::int32_t>& lengths, const At& at = {}) {
    return TensorArray(detail::any_array_split(x.beside(lengths), lengths, at));
  }

  /// index: [].
  TensorArray write(const Operand<std::int32_t>& index, const Operand<T>& element, const At& at = {}) const {
    return TensorArray(build<TensorListSetItem>({list_, index.beside(list_), element.beside(list_)}, {}, at));
  }
  Output<T> read(const Operand<std::int32_t>& index, const At& at = {}) const {
    return Output<T>::unchecked(detail::any_array_read(list_, index.beside(list_), dtype_of<T>, at));
  }
  /// -> [n, ...].
  Output<T> stack(const At& at = {}) const {
    return Output<T>::unchecked(detail::any_array_stack(list_, dtype_of<T>, at));
  }
  /// The rows of all elements [n_i, ...], one element behind the other -> [sum of n_i, ...]. If elements have
  /// different numbers of rows, declare their shape with this number unknown: `{df::dynamic, 3}`. An element that was
  /// not written has as many rows of zeros as the others. Errors: InvalidArgument when the step runs: for scalar
  /// elements, and for rows that differ in shape; for an unwritten element if the others differ in their number of
  /// rows; if no element was written and the shape of rows is not known.
  Output<T> concat(const At& at = {}) const {
    return Output<T>::unchecked(detail::any_array_concat(list_, dtype_of<T>, at));
  }
  /// indices: [m] -> [m, ...].
  Output<T> gather(const Operand<std::int32_t>& indices, const At& at = {}) const {
    return Output<T>::unchecked(detail::any_array_gather(list_, indices.beside(list_), dtype_of<T>, at));
  }
  /// -> [].
  Output<std::int32_t> size(const At& at = {}) const {
    return Output<std::int32_t>::unchecked(build<TensorListLength>({list_}, {}, at));
  }

  const AnyOutput& list() const noexcept { return list_; }

 private:
  AnyOutput list_;
};

/// A stack of tensors: the tensor put on last is taken off first (TensorFlow's Stack). A value, as TensorArray is.
///
/// Errors: InvalidArgument when the step runs and takes from an empty stack.
template <Element T>
class TensorStack {
 public:
  using element_type = T;

  TensorStack() = default;
  explicit TensorStack(Graph& graph, const PartialShape& element_shape = PartialShape::unknown(), const At& at = {})
      : list_(build<EmptyTensorList>(*graph.store(), {}, {.element_shape = element_shape}, at)) {}
  /// The stack that an edge carries. Precondition: the edge is a list of elements of this type.
  explicit TensorStack(AnyOutput list) : list_(std::move(list)) {}

  TensorStack push(const Operand<T>& element, const At& at = {}) const {
    return TensorStack(AnyOutput(build<TensorListPushBack>({list_, element.beside(list_)}, {}, at)));
  }
  /// The rest of the stack, and the element that was on top.
  std::pair<TensorStack, Output<T>> pop(const At& at = {}) const {
    const BuiltNode node = build<TensorListPopBack>(
        {list_, detail::shape_to_ask_for(list_, TensorListPopBack::name, at)}, {}, at, detail::one_type(dtype_of<T>));
    return {TensorStack(node.output(0)), Output<T>::unchecked(node.output(1))};
  }
  /// -> [].
  Output<std::int32_t> size(const At& at = {}) const {
    return Output<std::int32_t>::unchecked(build<TensorListLength>({list_}, {}, at));
  }

  const AnyOutput& list() const noexcept { return list_; }

 private:
  AnyOutput list_;
};

namespace detail {

template <class Array>
struct ListBodyValue {
  using Type = Array;
  static void add(const Array& value, BodyResults& to) { to.edges.push_back(value.list()); }
  static Type of(const BuiltNode& node, int& next) { return Array(node.output(next++)); }
};
template <Element T>
struct BodyValue<TensorArray<T>> : ListBodyValue<TensorArray<T>> {};
template <Element T>
struct BodyValue<TensorStack<T>> : ListBodyValue<TensorStack<T>> {};

}  // namespace detail

}  // namespace dflow
