#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/control/check.hpp>

#include <utility>
#include <vector>

namespace dflow {

void detail::require_listed_types(InferContext& context, const std::vector<DType>& listed, std::string_view attribute) {
  if (listed.empty()) return;
  const auto num_listed = static_cast<int>(listed.size());
  bool fits = context.num_inputs() == 1 + num_listed;
  for (int i = 0; fits && i < num_listed; ++i) {
    fits = context.input_dtype(1 + i) == listed[static_cast<std::size_t>(i)];
  }
  if (!fits) {
    context.fail(str_cat("the ", num_listed, " element types of attribute '", attribute, "' are not those of the ",
                         context.num_inputs() - 1, " inputs"));
  }
}

void Assert::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  detail::require_listed_types(context, context.attrs<Assert>().T, "T");
}

void CheckNumerics::infer(InferContext& context) { context.set_output(0, context.input(0)); }

void CheckNumerics::gradient(GradientContext& context) {
  std::string message = str_cat("gradient of: ", context.attrs<CheckNumerics>().message);
  context.set_dx(0, build<CheckNumerics>({context.dy()}, {.message = std::move(message)}));
}

void EnsureShape::infer(InferContext& context) {
  context.set_output(0, context.merge(context.input(0), context.attrs<EnsureShape>().shape));
}

void EnsureShape::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }

Operation assert_that(const Output<bool>& condition, std::span<const AnyOutput> data, Assert::Attrs attrs,
                      const At& at) {
  std::vector<AnyOutput> inputs{condition};
  inputs.insert(inputs.end(), data.begin(), data.end());
  return build<Assert>(std::span<const AnyOutput>(inputs), std::move(attrs), at);
}

}  // namespace dflow
