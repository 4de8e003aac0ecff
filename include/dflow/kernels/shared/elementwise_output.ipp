#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/shared/elementwise_output.hpp>

#include <optional>

namespace dflow {

AnyTensor& make_elementwise_output(KernelContext& context, int num_inputs, const Shape& shape) {
  for (int i = 0; i < num_inputs; ++i) {
    const AnyTensor& x = context.input(i);
    if (x.num_elements() == shape.num_elements() && x.dtype() == context.output_dtype(0) && context.owns_input(i)) {
      return context.forward_or_allocate(i, 0, shape);
    }
  }
  return context.allocate_output(0, shape);
}

Shape broadcast_input_shapes(const KernelContext& context, int num_inputs, bool broadcasts) {
  Shape shape = context.input(0).shape();
  for (int i = 1; i < num_inputs; ++i) {
    const Shape& other = context.input(i).shape();
    const std::optional<Shape> both = broadcasts       ? broadcast_shapes(shape, other)
                                      : shape == other ? std::optional(shape)
                                                       : std::nullopt;
    if (!both) {
      context.fail(str_cat("shapes ", shape.to_string(), " and ", other.to_string(),
                           broadcasts ? " do not broadcast together" : " differ"));
    }
    shape = *both;
  }
  return shape;
}

}  // namespace dflow
