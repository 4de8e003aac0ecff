#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>

#include <array>
#include <vector>

namespace dflow::detail {

/// The values of a running node's inputs: all of them.
class RunningInputs final : public InputValues {
 public:
  explicit RunningInputs(const KernelContext& context) : context_(context) {}
  const AnyTensor* value(int i) const override { return &context_.input(i); }

 private:
  const KernelContext& context_;
};

/// `count` items: in the object itself while they are few.
template <class T>
class SmallArray {
 public:
  explicit SmallArray(int count) : size_(static_cast<std::size_t>(count)) {
    if (size_ > few_.size()) many_.resize(size_);
  }
  std::span<T> span() { return {size_ > few_.size() ? many_.data() : few_.data(), size_}; }

 private:
  std::array<T, 8> few_;
  std::vector<T> many_;
  std::size_t size_;
};

void with_inferred_shapes(const KernelContext& context, FunctionRef<void(std::span<const PartialShape>)> take) {
  SmallArray<PartialShape> shapes(context.num_inputs()), outputs(context.num_outputs());
  SmallArray<DType> dtypes(context.num_inputs());
  for (int i = 0; i < context.num_inputs(); ++i) {
    shapes.span()[static_cast<std::size_t>(i)] = context.input(i).shape();
    dtypes.span()[static_cast<std::size_t>(i)] = context.input(i).dtype();
  }
  for (PartialShape& output : outputs.span()) output = PartialShape::unknown();
  const RunningInputs values(context);
  InferContext(context.node(), shapes.span(), dtypes.span(), values, outputs.span()).infer();
  take(outputs.span());
}

Shape inferred_shape(const KernelContext& context, int o) {
  if (o < 0 || o >= context.num_outputs()) {
    context.fail(str_cat("output ", o, " is asked for, of ", context.num_outputs()));
  }
  Shape inferred;
  with_inferred_shapes(context, [&](std::span<const PartialShape> outputs) {
    const PartialShape& shape = outputs[static_cast<std::size_t>(o)];
    if (!shape.is_fully_defined()) {
      context.fail(str_cat("the shape of output ", o, " does not follow from the inputs"));
    }
    inferred = shape.to_shape();
  });
  return inferred;
}

void refuse_shapes(const KernelContext& context) {
  with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  throw_error(Status::internal("the kernel refuses shapes that the op's shape function accepts"));
}

}  // namespace dflow::detail
