#pragma once

#include <dflow/kernels/cuda/state/variable.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace dflow::cuda {

namespace detail {

/// With nobody behind the inputs that the update does not have.
inline VariableUpdate hold(const std::array<VariableState*, UpdateArgs::max_variables>& states, int count) {
  switch (count) {
    case 1:
      return VariableUpdate({states[0]});
    case 2:
      return VariableUpdate({states[0], states[1]});
    default:
      return VariableUpdate({states[0], states[1], states[2]});
  }
}

inline void set_factors(const KernelContext& context, const VariableUpdateCall& call, UpdateArgs& args) {
  for (int i = 0; i < call.inputs.num_factors(); ++i) {
    const int input = call.inputs.factor(i);
    dflow::detail::require_scalar(context, input);
    args.factors[i] = context.input(input).raw_data();
  }
}

}  // namespace detail

void update_variables(const KernelContext& context, DType dtype, const VariableUpdateCall& call,
                      const KernelFunction& function) {
  using dflow::detail::require_same_shape;
  std::array<VariableState*, UpdateArgs::max_variables> states{};
  for (int i = 0; i < call.inputs.num_variables; ++i) {
    states[static_cast<std::size_t>(i)] = &dflow::detail::variable_input(context, i, dtype);
  }
  VariableUpdate update = detail::hold(states, call.inputs.num_variables);
  const AnyTensor& gradient = context.input(call.inputs.gradient);
  require_same_shape(context, update.value(0), gradient, call.inputs.num_factors() == 0 ? "value" : "gradient");
  for (int i = 1; i < call.inputs.num_variables; ++i) {
    require_same_shape(context, update.value(0), update.value(static_cast<std::size_t>(i)), "slot");
  }
  UpdateArgs args;
  args.n = gradient.num_elements();
  args.gradient = gradient.raw_data();
  args.errors = step_of(context).noted();
  args.use_nesterov = call.use_nesterov;
  detail::set_factors(context, call, args);
  if (args.n == 0) return;
  std::array<const AnyTensor*, UpdateArgs::max_variables> written{};
  for (int i = 0; i < call.inputs.num_variables; ++i) {
    AnyTensor& variable =
        update.writable(static_cast<std::size_t>(i), [&](const AnyTensor& value) { return copy_of(context, value); });
    args.variables[i] = variable.raw_data();
    written[static_cast<std::size_t>(i)] = &variable;
  }
  launch(context, function, grid_for(args.n), &args, args.errors,
         {written.data(), static_cast<std::size_t>(call.inputs.num_variables)});
}

}  // namespace dflow::cuda
