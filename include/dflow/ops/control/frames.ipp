#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/ops/control/frames.hpp>

namespace dflow {

void Switch::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  for (int side = 0; side < 2; ++side) context.set_output(side, context.input(0));
}

void Merge::infer(InferContext& context) {
  if (context.num_inputs() == 0) context.fail("it has no inputs");
  PartialShape shape = context.input(0);
  for (int i = 1; i < context.num_inputs(); ++i) shape = shape.generalized_with(context.input(i));
  const PartialShape& given = context.attrs<Merge>().shape;
  if (given.has_rank()) {
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (given.is_compatible_with(context.input(i))) continue;
      context.fail(str_cat("the shape is said to be ", given.to_string(), ", and input ", i, " has ",
                           context.input(i).to_string()));
    }
    shape = given;
  }
  if (context.attrs<Merge>().has_any_shape) shape = PartialShape::unknown();
  context.set_output(0, shape);
  context.set_output(1, Shape{});
}

void Enter::infer(InferContext& context) {
  const Enter::Attrs& attrs = context.attrs<Enter>();
  if (attrs.frame_name.empty()) context.fail("the frame has no name");
  if (attrs.parallel_iterations < 1) {
    context.fail(str_cat("parallel_iterations is ", attrs.parallel_iterations, ", less than 1"));
  }
  context.set_output(0, context.input(0));
}

void Exit::infer(InferContext& context) { context.set_output(0, context.input(0)); }

void NextIteration::infer(InferContext& context) {
  const PartialShape &next = context.input(0), &merged = context.input(1);
  // The shape that the Merge declares holds in all iterations.
  bool fits = !merged.has_rank() || (next.has_rank() && next.rank() == merged.rank());
  for (int i = 0; fits && merged.has_rank() && i < merged.rank(); ++i) {
    fits = merged.dim(i) == dynamic || merged.dim(i) == next.dim(i);
  }
  if (!fits) {
    context.fail(str_cat("the next value has shape ", next.to_string(), ", and its Merge ", merged.to_string(),
                         ": give the Merge the shape that holds in all iterations"));
  }
}

void LoopCond::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  context.set_output(0, Shape{});
}

Output<bool> frames::loop_cond(const Output<bool>& side, const At& at) {
  return Output<bool>::unchecked(build<LoopCond>({side}, {}, at).output(0));
}

}  // namespace dflow
