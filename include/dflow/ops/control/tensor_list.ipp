#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/op/gradient_context.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/reduction/add_n.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace dflow {

namespace detail {

/// The shape of an element, as far as the input for its shape tells.
inline PartialShape listed_element_shape(const InferContext& context, int input) {
  const PartialShape& extents = context.input(input);
  if (extents.has_rank() && extents.rank() == 0) return PartialShape::unknown();
  if (extents.has_rank() && extents.rank() != 1) {
    context.fail(str_cat("input ", input, " is a shape, a vector, not ", extents.to_string()));
  }
  if (const std::optional<PartialShape> shape = context.value_as_shape(input)) return *shape;
  const bool has_rank = extents.has_rank() && extents.dim(0) != dynamic;
  return has_rank ? PartialShape::unknown(static_cast<int>(extents.dim(0))) : PartialShape::unknown();
}

inline PartialShape with_leading_dim(std::int64_t dim, const PartialShape& shape) {
  if (!shape.has_rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims{dim};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return PartialShape(dims);
}

/// Infers a result from the input that holds its shape.
inline void infer_dense(InferContext& context, int input) {
  const PartialShape shape = listed_element_shape(context, input);
  if (shape.has_rank() && shape.rank() == 0) context.fail("the result has a leading dimension");
  context.set_output(0, shape);
}

/// A list of elements of that shape.
inline void infer_list(InferContext& context, const PartialShape& element = PartialShape::unknown()) {
  context.set_output(0, element);
}
/// Errors: InvalidArgument where the element cannot be one of the list on input 0.
inline void require_element_shape(InferContext& context, int item) {
  if (context.input(0).is_compatible_with(context.input(item))) return;
  context.fail(
      str_cat("an element of shape ", context.input(item).to_string(), " in a list of ", context.input(0).to_string()));
}
inline PartialShape without_leading_dim(const PartialShape& shape) {
  return shape.has_rank() ? PartialShape(shape.dims().subspan(1)) : PartialShape::unknown();
}

/// The shape of some of its rows.
inline PartialShape with_any_rows(const PartialShape& shape) {
  return shape.has_rank() ? shape.with_dim(0, dynamic) : shape;
}
/// The shape of some rows of x as an input of an op.
inline AnyOutput element_extents(const AnyOutput& x) {
  GraphStore& graph = *x.graph();
  const AnyOutput any = int32_constant(graph, std::array<std::int64_t, 1>{-1});
  const AnyOutput first = int32_constant(graph, std::array<std::int64_t, 1>{1});
  const std::array<AnyOutput, 2> dims{any, build<Slice>({shape_of(x), first, any})};
  return any_concat(0, dims);
}

// The gradient of a list is a list of sums, for an element may be read in each iteration of a loop. The sums have the
// type `sum_type`. They are rounded where a tensor takes them.

/// The elements of a list's gradient as the gradient of a tensor like `like`. Op O makes one tensor of them.
template <class O>
AnyOutput gradient_rows(const std::vector<AnyOutput>& inputs, const AnyOutput& like) {
  return cast_to(dflow::build<O>(inputs, {}, {}, one_type(sum_type(like.dtype()))).output(0), like.dtype());
}

/// The element of a list's gradient that belongs to an element like `like`, in its type.
inline AnyOutput rounded_element(const AnyOutput& list, const AnyOutput& index, const AnyOutput& like) {
  return cast_to(gradient_element(list, index, like), like.dtype());
}

AnyOutput zero_gradient(const AnyOutput& edge) {
  if (edge.dtype() == DType::variant) return build<EmptyTensorList>(*edge.graph(), {});  // of elements of any shape
  return dflow::zeros_like(edge);
}

AnyOutput gradient_element(const AnyOutput& list, const AnyOutput& index, const AnyOutput& like) {
  return build<TensorListGetItem>({list, index, shape_of(like)}, {.zero_if_missing = true}, {},
                                  two_types(sum_type(like.dtype()), index.dtype()));
}

AnyOutput sum_of_gradients(const std::vector<AnyOutput>& gradients) {
  const DType first = gradients.front().dtype();
  if (first == DType::variant) return build<TensorListSum>(gradients);
  const bool are_alike =
      std::all_of(gradients.begin(), gradients.end(), [&](const AnyOutput& each) { return each.dtype() == first; });
  if (are_alike) return build<AddN>(gradients);
  std::vector<AnyOutput> wide;
  wide.reserve(gradients.size());
  for (const AnyOutput& each : gradients) wide.push_back(widened(each));
  return build<AddN>(wide);
}

}  // namespace detail

void EmptyTensorList::infer(InferContext& context) {
  detail::infer_list(context, context.attrs<EmptyTensorList>().element_shape);
}

void TensorListReserve::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  detail::infer_list(context, context.attrs<TensorListReserve>().element_shape);
}

void TensorListLength::infer(InferContext& context) { context.set_output(0, Shape{}); }

void TensorListResize::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  detail::infer_list(context, context.input(0));
}
void TensorListResize::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListResize>({context.dy(), context.input(1)}));  // dropped elements have none
}

void TensorListFromTensor::infer(InferContext& context) {
  detail::infer_list(context, detail::without_leading_dim(context.with_rank_at_least(0, 1)));
}
void TensorListFromTensor::gradient(GradientContext& context) {
  const AnyOutput x = context.input(0);
  context.set_dx(0, detail::gradient_rows<TensorListToTensor>({context.dy(), shape_of(x)}, x));
}

void TensorListStack::infer(InferContext& context) {
  const std::int64_t count = context.attrs<TensorListStack>().num_elements;
  if (count < -1) context.fail(str_cat("num_elements is ", count));
  const PartialShape element = context.merge(context.input(0), detail::listed_element_shape(context, 1));
  context.set_output(0, detail::with_leading_dim(count < 0 ? dynamic : count, element));
}
void TensorListStack::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListFromTensor>({detail::widened(context.dy())}));
}

void TensorListToTensor::infer(InferContext& context) { detail::infer_dense(context, 1); }
void TensorListToTensor::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListFromTensor>({detail::widened(context.dy())}));
}

void TensorListConcatV2::infer(InferContext& context) {
  static_cast<void>(context.with_rank(2, 1));
  const PartialShape element = context.merge(context.input(0), detail::listed_element_shape(context, 1));
  context.set_output(0, element);
  context.set_output(1, PartialShape::unknown(1));
  if (!element.has_rank()) return;
  if (element.rank() == 0) context.fail("scalars cannot be concatenated; stacking makes them a vector");
  context.set_output(0, element.with_dim(0, dynamic));
}
void TensorListConcatV2::gradient(GradientContext& context) {
  if (!context.has_dy(0)) return;
  context.set_dx(0, build<TensorListSplit>({detail::widened(context.dy()), context.input(1), context.output(1)}));
}

void TensorListSplit::infer(InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 1), asked = detail::listed_element_shape(context, 1);
  static_cast<void>(context.with_rank(2, 1));
  if (asked.has_rank() && asked.rank() == 0) context.fail("an element has a leading dimension");
  detail::infer_list(context, context.merge(detail::with_any_rows(x), detail::with_any_rows(asked)));
}
void TensorListSplit::gradient(GradientContext& context) {
  const AnyOutput x = context.input(0);
  const AnyOutput lengths = context.input(2);
  const Expr count = shape_of(lengths);  // [1]
  const AnyOutput all = build<TensorListResize>({context.dy(), detail::any_reshape(count, {}, {})});
  context.set_dx(0, detail::gradient_rows<TensorListConcatV2>({all, detail::element_extents(x), lengths}, x));
}

void TensorListGetItem::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, context.merge(context.input(0), detail::listed_element_shape(context, 2)));
}
void TensorListGetItem::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListOne>({context.input(1), detail::widened(context.dy())}));
}

void TensorListSetItem::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  detail::require_element_shape(context, 2);
  detail::infer_list(context, context.input(0));
}
void TensorListSetItem::gradient(GradientContext& context) {
  // The reader of the list comes first, so that the other node may change the list in place.
  context.set_dx(2, detail::rounded_element(context.dy(), context.input(1), context.input(2)));
  context.set_dx(0, build<TensorListUnset>({context.dy(), context.input(1)}));
}

void TensorListPushBack::infer(InferContext& context) {
  detail::require_element_shape(context, 1);
  detail::infer_list(context, context.input(0));
  context.set_output(1, Shape{});
}
void TensorListPushBack::gradient(GradientContext& context) {
  if (!context.has_dy(0)) return;
  context.set_dx(1, detail::rounded_element(context.dy(), context.output(1), context.input(1)));
  context.set_dx(0, build<TensorListUnset>({context.dy(), context.output(1)}));
}

void TensorListPopBack::infer(InferContext& context) {
  detail::infer_list(context, context.input(0));
  context.set_output(1, context.merge(context.input(0), detail::listed_element_shape(context, 1)));
  context.set_output(2, Shape{});
}
void TensorListPopBack::gradient(GradientContext& context) {
  std::vector<AnyOutput> parts;
  if (context.has_dy(0)) parts.push_back(build<TensorListUnset>({context.dy(0), context.output(2)}));
  if (context.has_dy(1)) parts.push_back(build<TensorListOne>({context.output(2), detail::widened(context.dy(1))}));
  if (!parts.empty()) context.set_dx(0, build<TensorListSum>(parts));
}

void TensorListGather::infer(InferContext& context) {
  const PartialShape indices = context.with_rank(1, 1);
  const PartialShape element = context.merge(context.input(0), detail::listed_element_shape(context, 2));
  context.set_output(0, detail::with_leading_dim(indices.dim(0), element));
}
void TensorListGather::gradient(GradientContext& context) {
  const AnyOutput any_size = detail::any_constant(context.graph(), Tensor<std::int32_t>::full({}, -1), {});
  context.set_dx(0, build<TensorListScatter>({detail::widened(context.dy()), context.input(1), any_size}));
}

void TensorListScatter::infer(InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 1), indices = context.with_rank(1, 1);
  static_cast<void>(context.with_rank(2, 0));
  if (x.has_rank()) static_cast<void>(context.merge_dim(x.dim(0), indices.dim(0)));
  detail::infer_list(context, detail::without_leading_dim(x));
}
void TensorListScatter::gradient(GradientContext& context) {
  const AnyOutput x = context.input(0);
  context.set_dx(0, detail::gradient_rows<TensorListGatherRows>({context.dy(), context.input(1), shape_of(x)}, x));
}

void TensorListGatherRows::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  detail::infer_dense(context, 2);
}
void TensorListGatherRows::gradient(GradientContext& context) {
  const AnyOutput any_size = detail::any_constant(context.graph(), Tensor<std::int32_t>::full({}, -1), {});
  context.set_dx(0, build<TensorListScatter>({detail::widened(context.dy()), context.input(1), any_size}));
}

void TensorListSum::infer(InferContext& context) {
  if (context.num_inputs() == 0) context.fail("there are no lists");
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (context.input_dtype(i) != DType::variant) context.fail(str_cat("input ", i, " is no list of tensors"));
  }
  detail::infer_list(context);
}
void TensorListSum::gradient(GradientContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) context.set_dx(i, context.dy());
}

void TensorListOne::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  detail::infer_list(context);
}
void TensorListOne::gradient(GradientContext& context) {
  context.set_dx(1, detail::rounded_element(context.dy(), context.input(0), context.input(1)));
}

void TensorListOneList::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  detail::infer_list(context);
}
void TensorListOneList::gradient(GradientContext& context) {
  context.set_dx(1, build<KeptListElement>({context.dy(), context.input(0)}));
}

void TensorListUnset::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  detail::infer_list(context, context.input(0));
}
void TensorListUnset::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListUnset>({context.dy(), context.input(1)}));
}

}  // namespace dflow
