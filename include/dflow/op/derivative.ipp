#pragma once

#include <dflow/op/derivative.hpp>

namespace dflow {

AnyOutput detail::build_derivative(const GradientContext& context, const OpDef& op, int input) {
  std::vector<AnyOutput> inputs;
  inputs.reserve(static_cast<std::size_t>(context.num_inputs()) + 1);
  for (int i = 0; i < context.num_inputs(); ++i) inputs.push_back(context.input(i));
  inputs.push_back(context.dy());
  const NodeRequest request{&op, inputs, {}, nullptr, {}, std::source_location::current()};
  const AnyOutput product(&context.graph(), Endpoint{append_node(context.graph(), request), 0});
  return sum_to_shape_of(product, context.input(input));
}

}  // namespace dflow
