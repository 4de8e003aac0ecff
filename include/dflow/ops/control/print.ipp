#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/print.hpp>

#include <vector>

namespace dflow {

void Print::infer(InferContext& context) {
  detail::require_listed_types(context, context.attrs<Print>().U, "U");
  context.set_output(0, context.input(0));
}

void Print::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }

AnyOutput detail::any_print(const AnyOutput& value, std::span<const AnyOutput> data, Print::Attrs attrs, const At& at) {
  std::vector<AnyOutput> inputs{value};
  inputs.insert(inputs.end(), data.begin(), data.end());
  return build<Print>(std::span<const AnyOutput>(inputs), std::move(attrs), at);
}

}  // namespace dflow
