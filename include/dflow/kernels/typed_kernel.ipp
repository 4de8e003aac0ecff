#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/kernels/typed_kernel.hpp>

#include <vector>

namespace dflow {

namespace detail {

/// The values of a running node's inputs: all of them.
class StepInputValues final : public InputValues {
 public:
  explicit StepInputValues(const KernelContext& context) : context_(context) {}
  const AnyTensor* value(int i) const override { return &context_.input(i); }

 private:
  const KernelContext& context_;
};

}  // namespace detail

DFLOW_INLINE void detail::allocate_inferred_outputs(KernelContext& context) {
  const Node& node = context.node();
  const auto num_inputs = static_cast<std::size_t>(context.num_inputs());
  const auto num_outputs = static_cast<std::size_t>(context.num_outputs());
  std::vector<PartialShape> shapes;
  std::vector<DType> dtypes;
  shapes.reserve(num_inputs + num_outputs);
  dtypes.reserve(num_inputs);
  for (std::size_t i = 0; i < num_inputs; ++i) {
    shapes.emplace_back(context.input(static_cast<int>(i)).shape());
    dtypes.push_back(context.input(static_cast<int>(i)).dtype());
  }
  shapes.resize(num_inputs + num_outputs, PartialShape::unknown());
  const std::span<PartialShape> all(shapes);
  const StepInputValues values(context);
  InferContext infer(node, all.first(num_inputs), dtypes, values, all.subspan(num_inputs));
  node.op->infer(infer);
  for (std::size_t i = 0; i < num_outputs; ++i) {
    const PartialShape& shape = shapes[num_inputs + i];
    if (!shape.is_fully_defined()) {
      context.fail(str_cat("the shape of output ", i, " does not follow from the inputs; its kernel must allocate it"));
    }
    context.allocate_output(static_cast<int>(i), shape.to_shape());
  }
}

}  // namespace dflow
