#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/cast.hpp>

namespace dflow {

namespace detail {

/// Errors: InvalidArgument for shapes that are not as many as the outputs.
inline void set_listed_shapes(InferContext& context, const std::vector<PartialShape>& shapes) {
  if (shapes.empty()) return;
  if (shapes.size() != static_cast<std::size_t>(context.num_outputs())) {
    context.fail(str_cat(shapes.size(), " shapes are listed for ", context.num_outputs(), " outputs"));
  }
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shapes[static_cast<std::size_t>(i)]);
}

}  // namespace detail

void FunctionArgument::infer(InferContext& context) {
  const FunctionArgument::Attrs& attrs = context.attrs<FunctionArgument>();
  if (attrs.number < 0 || attrs.number >= max_arguments) {
    context.fail(str_cat("number ", attrs.number, ", not one of 0 to ", max_arguments - 1));
  }
  context.set_output(0, attrs.shape);
}

void CallFunction::infer(InferContext& context) {
  detail::set_listed_shapes(context, context.attrs<CallFunction>().output_shapes);
}

void If::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  detail::set_listed_shapes(context, context.attrs<If>().output_shapes);
}

void Case::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  if (context.attrs<Case>().branches.empty()) context.fail("there are no branches");
  detail::set_listed_shapes(context, context.attrs<Case>().output_shapes);
}

void While::infer(InferContext& context) {
  const While::Attrs& attrs = context.attrs<While>();
  if (attrs.parallel_iterations < 1) {
    context.fail(str_cat("parallel_iterations is ", attrs.parallel_iterations, ", less than 1"));
  }
  if (attrs.max_kept_bytes < -1) {
    context.fail(str_cat("max_kept_bytes is ", attrs.max_kept_bytes, ", less than nothing"));
  }
  if (attrs.output_types.size() > static_cast<std::size_t>(context.num_inputs())) {
    context.fail(str_cat(attrs.output_types.size(), " variables have ", context.num_inputs(), " first values"));
  }
  for (std::size_t i = 0; i < attrs.output_types.size(); ++i) {
    if (attrs.output_types[i] == context.input_dtype(static_cast<int>(i))) continue;
    context.fail(str_cat("variable ", i, " is ", dtype_name(attrs.output_types[i]), ", and its first value ",
                         dtype_name(context.input_dtype(static_cast<int>(i)))));
  }
  detail::set_listed_shapes(context, attrs.output_shapes);
}

void KeptListPush::infer(InferContext& context) {
  if (context.num_inputs() != 2) context.fail(str_cat("takes a list and one value, not ", context.num_inputs() - 1));
  context.set_output(0, PartialShape::unknown());
}

void CallTape::infer(InferContext& context) { context.set_output(0, PartialShape::unknown()); }
void CallTape::gradient(GradientContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) {
    const AnyOutput value = context.input(i);
    const AnyOutput number = detail::any_constant(context.graph(), Tensor<std::int64_t>(std::int64_t{i}), {});
    if (value.dtype() == DType::variant) {
      context.set_dx(i, build<KeptListElement>({context.dy(), number}));
    } else if (is_floating(value.dtype()) || is_complex(value.dtype())) {
      context.set_dx(i, detail::cast_to(detail::gradient_element(context.dy(), number, value), value.dtype()));
    }
  }
}

void KeptHandleElement::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, PartialShape::unknown());
}
void KeptListElement::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, PartialShape::unknown());
}
void KeptElement::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, context.attrs<KeptElement>().shape);
}

void KeptElement::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListOne>({context.input(1), detail::widened(context.dy())}));
}
void KeptListElement::gradient(GradientContext& context) {
  context.set_dx(0, build<TensorListOneList>({context.input(1), context.dy()}));
}

}  // namespace dflow
