#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>

namespace dflow {

void allocate_inferred_outputs(KernelContext& context) {
  detail::with_inferred_shapes(context, [&](std::span<const PartialShape> shapes) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (!shapes[i].is_fully_defined()) {
        context.fail(
            str_cat("the shape of output ", i, " does not follow from the inputs; its kernel must allocate it"));
      }
      context.allocate_output(static_cast<int>(i), shapes[i].to_shape());
    }
  });
}

}  // namespace dflow
