#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/kernels/inferred_shape.hpp>

#include <array>
#include <span>
#include <vector>

namespace dflow::detail {

/// The values of a running node's inputs.
class RunningInputs final : public InputValues {
 public:
  explicit RunningInputs(const KernelContext& context) : context_(context) {}
  const AnyTensor* value(int i) const override { return &context_.input(i); }

 private:
  const KernelContext& context_;
};

DFLOW_INLINE Shape inferred_shape(const KernelContext& context, int o) {
  constexpr std::size_t few = 8;
  std::array<PartialShape, few> few_shapes, few_outputs;
  std::array<DType, few> few_dtypes;
  std::vector<PartialShape> many_shapes, many_outputs;
  std::vector<DType> many_dtypes;
  const auto room = [](auto& few_items, auto& many_items, int count) {
    const auto size = static_cast<std::size_t>(count);
    if (size > few) many_items.resize(size);
    return std::span(size > few ? many_items.data() : few_items.data(), size);
  };
  const auto shapes = room(few_shapes, many_shapes, context.num_inputs());
  const auto dtypes = room(few_dtypes, many_dtypes, context.num_inputs());
  const auto outputs = room(few_outputs, many_outputs, context.num_outputs());
  for (int i = 0; i < context.num_inputs(); ++i) {
    shapes[static_cast<std::size_t>(i)] = context.input(i).shape();
    dtypes[static_cast<std::size_t>(i)] = context.input(i).dtype();
  }
  for (PartialShape& output : outputs) output = PartialShape::unknown();
  const RunningInputs values(context);
  InferContext infer(context.node(), shapes, dtypes, values, outputs);
  context.node().op->infer(infer);
  const PartialShape& shape = outputs[static_cast<std::size_t>(o)];
  if (!shape.is_fully_defined()) context.fail(str_cat("the shape of output ", o, " does not follow from the inputs"));
  return shape.to_shape();
}

}  // namespace dflow::detail
