#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>

namespace dflow {

// Lists of tensors: loops gather and read them (TensorFlow's TensorList). A list is a value like a tensor: an op that
// changes a list gives a new list, which shares the tensors. An element that is not set is zeros if a shape says its
// size. The gradient with respect to a list is therefore a list; only its nonzero elements are set. Numbers of
// elements are int32 or int64. The shape of an edge that carries a list is the shape of the list's elements.

struct TensorListAttrs {
  PartialShape element_shape = PartialShape::unknown();  ///< that elements may have
};

/// A list without elements.
struct EmptyTensorList : StandardOp<"EmptyTensorList"> {
  using Attrs = TensorListAttrs;
  using Inputs = In<>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};

/// number of elements [] -> a list without any set element.
struct TensorListReserve : StandardOp<"TensorListReserve"> {
  using Attrs = TensorListAttrs;
  using Inputs = In<std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};

/// list -> its number of elements, [].
struct TensorListLength : StandardOp<"TensorListLength"> {
  using Inputs = In<TensorListHandle>;
  using Outputs = Out<std::int32_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// list, number of elements [] -> the list with this number of elements; new elements are not set.
struct TensorListResize : StandardOp<"TensorListResize"> {
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [n, ...] -> a list of its n rows.
struct TensorListFromTensor : StandardOp<"TensorListFromTensor", AllTypes> {
  using Inputs = In<T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list of n, shape of an element (-1: unknown extent; a scalar: unknown shape) -> [n, ...]. Errors: InvalidArgument
/// if elements differ in shape; if the list does not have `num_elements` elements, unless this is -1; if no element is
/// set and their shape is not known.
struct TensorListStack : StandardOp<"TensorListStack", AllTypes> {
  struct Attrs {
    std::int64_t num_elements = -1;
  };
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list of elements [r_i, ...], shape of an element (-1: not known), [m] -> [sum of r_i, ...], the rows of all
/// elements one behind the other, and r [n]. The last input gives r of the first m elements where they are not set;
/// for the rest the shape gives r, or all other elements if they agree. Errors: InvalidArgument if elements are
/// scalars, or their rows differ in shape; if the number of rows of an element, or the shape of rows, is not known.
struct TensorListConcatV2 : StandardOp<"TensorListConcatV2", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t, std::int64_t>;
  using Outputs = Out<T, std::int64_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [sum of r_i, ...], shape of an element (-1: not known; its first dimension is ignored), r: [n] -> a list of
/// elements [r_i, ...], which share x's memory. Errors: InvalidArgument if an r is negative, or their sum is not the
/// number of x's rows; ResourceExhausted for more than 2^24 elements.
struct TensorListSplit : StandardOp<"TensorListSplit", AllTypes> {
  using Inputs = In<T, std::int32_t, std::int64_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, number [], shape of the element (-1: not known) -> the element. Errors: InvalidArgument if the list has no
/// element of that number, unless `zero_if_missing`; if the element is not set and its shape is not known.
struct TensorListGetItem : StandardOp<"TensorListGetItem", AllTypes, IndexTypes> {
  struct Attrs {
    bool zero_if_missing = false;
  };
  using Inputs = In<TensorListHandle, U, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// list, number [], element -> the list with that element. Errors: InvalidArgument if the list has no element of that
/// number, unless `resize_if_index_out_of_bounds`.
struct TensorListSetItem : StandardOp<"TensorListSetItem", AllTypes, IndexTypes> {
  struct Attrs {
    bool resize_if_index_out_of_bounds = false;
  };
  using Inputs = In<TensorListHandle, U, T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, element -> the list with the element at its end, and the element's number [].
struct TensorListPushBack : StandardOp<"TensorListPushBack", AllTypes> {
  using Inputs = In<TensorListHandle, T>;
  using Outputs = Out<TensorListHandle, std::int64_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, shape of the element (-1: not known) -> the list without its last element, that element, and its number [].
/// Errors: InvalidArgument for an empty list.
struct TensorListPopBack : StandardOp<"TensorListPopBack", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<TensorListHandle, T, std::int64_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, numbers [m], shape of an element (-1: not known) -> [m, ...]. Errors: as for one element.
struct TensorListGather : StandardOp<"TensorListGather", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [m, ...], numbers [m], number of elements [] (-1: as many as needed) -> a list with these rows. Several rows for
/// one element are added; strings and truth values must not have several.
struct TensorListScatter : StandardOp<"TensorListScatter", AllTypes> {
  using Inputs = In<T, std::int32_t, std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

// ---- ops that gradients are made of ----

/// The sum of lists, element by element; an element that is not set is zero.
struct TensorListSum : StandardOp<"TensorListSum"> {
  using Inputs = In<AnyList>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// number [], element -> a list with that element set and no other.
struct TensorListOne : StandardOp<"TensorListOne", AllTypes, IndexTypes> {
  using Inputs = In<U, T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// The same with a list as the element.
struct TensorListOneList : StandardOp<"TensorListOneList"> {
  using Inputs = In<std::int64_t, TensorListHandle>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, shape [n, ...] of the result -> its elements; an element that is not set is zeros.
struct TensorListToTensor : StandardOp<"TensorListToTensor", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, numbers [m], shape [m, ...] of the result -> the elements of the given numbers; an element that is not set is
/// zeros.
struct TensorListGatherRows : StandardOp<"TensorListGatherRows", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, number [] -> the list with that element not set.
struct TensorListUnset : StandardOp<"TensorListUnset", IndexTypes> {
  using Inputs = In<TensorListHandle, T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// The gradient of an edge that has got none: zeros, or an empty list. Errors: as `zeros_like`.
AnyOutput zero_gradient(const AnyOutput& edge);
/// The element of a list's gradient that belongs to an element like `like`, in the type of sums of its elements; zeros
/// if there is none.
AnyOutput gradient_element(const AnyOutput& list, const AnyOutput& index, const AnyOutput& like);
/// The sum of gradients of one edge. If some of them are in the type of sums (`widened`), the sum is too.
AnyOutput sum_of_gradients(const std::vector<AnyOutput>& gradients);
}  // namespace detail

}  // namespace dflow
