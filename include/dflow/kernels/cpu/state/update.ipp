#pragma once

#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/state/update.hpp>

namespace dflow::detail {

VariableUpdate HeldUpdate::hold(const KernelContext& context, const UpdateInputs& inputs) {
  const auto variable = [&](int i) { return &variable_input(context, i, context.node().types[0]); };
  switch (inputs.num_variables) {
    case 1:
      return VariableUpdate({variable(0)});
    case 2:
      return VariableUpdate({variable(0), variable(1)});
    case 3:
      return VariableUpdate({variable(0), variable(1), variable(2)});
    default:
      return VariableUpdate({variable(0), variable(1), variable(2), variable(3)});
  }
}

HeldUpdate::HeldUpdate(KernelContext& context, const UpdateInputs& inputs, bool use_nesterov, double element_ns)
    : context_(context), inputs_(inputs), update_(hold(context, inputs)) {
  for (int i = 1; i < inputs.num_variables; ++i) {
    require_same_shape(context, update_.value(0), update_.value(static_cast<std::size_t>(i)), "slot");
  }
  arguments_.dtype = update_.value(0).dtype();
  arguments_.use_nesterov = use_nesterov;
  arguments_.element_ns = element_ns;
  for (int i = 0; i < inputs.num_factors(); ++i) {
    require_scalar(context, inputs.factor(i));
    arguments_.factors[i] = visit_dtype<FloatTypes>(arguments_.dtype, [&]<class T>() -> double {
      return static_cast<double>(*context.input<T>(inputs.factor(i)).data());
    });
  }
}

const cpu::UpdateArguments& HeldUpdate::write(const AnyTensor& gradient) {
  arguments_.gradient = gradient.raw_data();
  for (int i = 0; i < inputs_.num_variables; ++i) {
    arguments_.variables[i] = update_.writable(static_cast<std::size_t>(i), *context_.device().allocator).raw_data();
  }
  return arguments_;
}

SummedRows::SummedRows(KernelContext& context, const AnyTensor& variable, const AnyTensor& gradient,
                       const AnyTensor& given) {
  row_size = checked_row_size(context, variable, given, gradient);
  indices = context.allocate_temporary(given.dtype(), given.shape());
  rows = context.allocate_temporary(gradient.dtype(), gradient.shape());
  visit_dtype<IndexTypes>(given.dtype(), [&]<class Index>() {
    const Index* const from = static_cast<const Index*>(given.raw_data());
    const std::int64_t bad = cpu::find_bad_index(given.num_elements(), from, variable.dim(0));
    if (bad >= 0) fail_bad_index(context, bad, from[bad], variable.dim(0));
    count = visit_dtype<FloatTypes>(gradient.dtype(), [&]<class T>() -> std::int64_t {
      return cpu::sum_duplicate_rows(
          context.pool(), given.num_elements(), row_size, from, static_cast<const T*>(gradient.raw_data()),
          static_cast<Index*>(indices.raw_data()), static_cast<T*>(rows.raw_data()), cpu_options(context));
    });
  });
}

}  // namespace dflow::detail
