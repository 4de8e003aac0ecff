#pragma once

#include <dflow/kernels/cpu/math/broadcast.hpp>

namespace dflow::cpu {

Shape given_shape(const KernelContext& context, bool given_is_wide) {
  const Tensor<std::int32_t>& extents = context.input<std::int32_t>(1);
  if (extents.rank() != 1) context.fail(str_cat("a shape must be a vector, got shape ", extents.shape().to_string()));
  const std::vector<std::int64_t> dims(extents.begin(), extents.end());
  const Shape given{std::span<const std::int64_t>(dims)}, &held = context.input(0).shape();
  const Shape &wide = given_is_wide ? given : held, &narrow = given_is_wide ? held : given;
  const std::optional<Shape> both = broadcast_shapes(wide, narrow);
  if (!both || !(*both == wide)) {
    context.fail(str_cat("shape ", narrow.to_string(), " does not broadcast to ", wide.to_string()));
  }
  return given;
}

SumPasses::SumPasses(const Shape& wide, const Shape& narrow) {
  if (wide.num_elements() == 0 && wide != narrow) {
    // The extents beside the zero may have any size.
    passes[count++] = {.outer = narrow.num_elements(), .reduce = 0, .inner = 1};
    return;
  }
  const int missing = wide.rank() - narrow.rank();
  const auto is_summed = [&](int d) { return d < missing || (narrow.dim(d - missing) == 1 && wide.dim(d) != 1); };
  // From the last run of summed dimensions to the first; `inner` counts the kept elements after the run.
  std::int64_t inner = 1;
  for (int d = wide.rank() - 1; d >= 0;) {
    if (!is_summed(d)) {
      inner *= wide.dim(d--);
      continue;
    }
    ReduceShape pass{.outer = 1, .reduce = 1, .inner = inner};
    for (; d >= 0 && (is_summed(d) || wide.dim(d) == 1); --d) pass.reduce *= wide.dim(d);
    if (d >= 0) pass.outer = wide.num_elements(0, d + 1);
    passes[count++] = pass;
  }
}

}  // namespace dflow::cpu
