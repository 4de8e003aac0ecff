#pragma once

#include <dflow/ops/control/check.hpp>
#include <dflow/ops/expr.hpp>

#include <vector>

namespace dflow {

DFLOW_INLINE void Assert::infer(InferContext& context) { static_cast<void>(context.with_rank(0, 0)); }

DFLOW_INLINE void CheckNumerics::infer(InferContext& context) { context.set_output(0, context.input(0)); }

DFLOW_INLINE void CheckNumerics::gradient(GradientContext& context) {
  std::string message = str_cat("gradient of: ", context.attrs<CheckNumerics>().message);
  context.set_dx(0, build<CheckNumerics>({context.dy()}, {.message = std::move(message)}));
}

DFLOW_INLINE void EnsureShape::infer(InferContext& context) {
  context.set_output(0, context.merge(context.input(0), context.attrs<EnsureShape>().shape));
}

DFLOW_INLINE void EnsureShape::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }

DFLOW_INLINE Operation assert_that(const Output<bool>& condition, std::span<const AnyOutput> data, Assert::Attrs attrs,
                                   const At& at) {
  std::vector<AnyOutput> inputs{condition};
  inputs.insert(inputs.end(), data.begin(), data.end());
  return build<Assert>(std::span<const AnyOutput>(inputs), attrs, at);
}

}  // namespace dflow
