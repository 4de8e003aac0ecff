#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>

namespace dflow {

// Lists of tensors: what loops gather and are given (TensorFlow's TensorList). A list is a value like a tensor: an op
// that changes one gives another, which shares the tensors. Elements that are not set are zeros where a shape says of
// what size. So the gradient with respect to a list is a list, of which only what is not zero is set. Numbers of
// elements are int32 or int64. The shape of an edge that carries a list is that of its elements.

struct TensorListAttrs {
  PartialShape element_shape = PartialShape::unknown();  ///< which elements may have
};

/// A list without elements.
struct EmptyTensorList : StandardOp<"EmptyTensorList"> {
  using Attrs = TensorListAttrs;
  using Inputs = In<>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};

/// number of elements [] -> a list in which none is set.
struct TensorListReserve : StandardOp<"TensorListReserve"> {
  using Attrs = TensorListAttrs;
  using Inputs = In<std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};

/// list -> how many elements it has, [].
struct TensorListLength : StandardOp<"TensorListLength"> {
  using Inputs = In<TensorListHandle>;
  using Outputs = Out<std::int32_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// list, number of elements [] -> the list with so many; new ones are not set.
struct TensorListResize : StandardOp<"TensorListResize"> {
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [n, ...] -> its n rows.
struct TensorListFromTensor : StandardOp<"TensorListFromTensor", AllTypes> {
  using Inputs = In<T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list of n, shape of an element (-1: not known; of a scalar nothing is) -> [n, ...]. Errors: InvalidArgument for
/// elements that differ in shape, or are not `num_elements` where that is not -1, or none of which is set where their
/// shape is not known.
struct TensorListStack : StandardOp<"TensorListStack", AllTypes> {
  struct Attrs {
    std::int64_t num_elements = -1;
  };
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list of elements [r_i, ...], shape of an element (-1: not known), [m] -> [sum of r_i, ...], their rows one behind
/// the other, and r [n]. The last input says r of elements that are not set, as far as it goes; else the shape does, or
/// all others. Errors: InvalidArgument for elements that are scalars or whose rows differ in shape, where it is not
/// known how many rows one has, or of what shape.
struct TensorListConcatV2 : StandardOp<"TensorListConcatV2", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t, std::int64_t>;
  using Outputs = Out<T, std::int64_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [sum of r_i, ...], shape of an element, whose first dimension says nothing (-1: not known), r: [n] -> a list of
/// elements [r_i, ...], which share x's memory. Errors: InvalidArgument for an r that is negative, and where they are
/// not as many rows as x has; ResourceExhausted for more than 2^24 elements.
struct TensorListSplit : StandardOp<"TensorListSplit", AllTypes> {
  using Inputs = In<T, std::int32_t, std::int64_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, number [], shape of the element (-1: not known) -> the element. Errors: InvalidArgument for a number that the
/// list does not have, unless what is missing is zero, and one that is not set where the shape is not known.
struct TensorListGetItem : StandardOp<"TensorListGetItem", AllTypes, IndexTypes> {
  struct Attrs {
    bool zero_if_missing = false;
  };
  using Inputs = In<TensorListHandle, U, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// list, number [], element -> the list with that element. Errors: InvalidArgument for a number that the list does not
/// have, unless it is to be resized.
struct TensorListSetItem : StandardOp<"TensorListSetItem", AllTypes, IndexTypes> {
  struct Attrs {
    bool resize_if_index_out_of_bounds = false;
  };
  using Inputs = In<TensorListHandle, U, T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, element -> the list with it behind, and its number [].
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

/// x: [m, ...], numbers [m], number of elements [] (-1: as many as are needed) -> a list with these rows; of several
/// rows for one element their sum, which of strings and truth values there may not be.
struct TensorListScatter : StandardOp<"TensorListScatter", AllTypes> {
  using Inputs = In<T, std::int32_t, std::int32_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

// ---- what gradients are made of ----

/// The sum, element by element, of lists; what is not set is zero.
struct TensorListSum : StandardOp<"TensorListSum"> {
  using Inputs = In<AnyList>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// number [], element -> a list in which that alone is set.
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

/// list, shape [n, ...] of the result -> its elements, of which those are zero that are not set.
struct TensorListToTensor : StandardOp<"TensorListToTensor", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, numbers [m], shape [m, ...] of the result -> those elements, of which those are zero that are not set.
struct TensorListGatherRows : StandardOp<"TensorListGatherRows", AllTypes> {
  using Inputs = In<TensorListHandle, std::int32_t, std::int32_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// list, number [] -> the list in which that element is not set.
struct TensorListUnset : StandardOp<"TensorListUnset", IndexTypes> {
  using Inputs = In<TensorListHandle, T>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// The gradient of an edge on which none has come: zeros, or an empty list. Errors: as `zeros_like`.
AnyOutput zero_gradient(const AnyOutput& edge);
/// The sum of gradients of one edge.
AnyOutput sum_of_gradients(const std::vector<AnyOutput>& gradients);
}  // namespace detail

}  // namespace dflow
