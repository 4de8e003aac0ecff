#pragma once

#include <dflow/kernels/cpu/state/variable.hpp>
#include <dflow/ops/state/count.hpp>

#include <limits>

namespace dflow {

template <class T>
struct Kernel<CountUpTo, Cpu, T> {
  CountUpTo::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 100; }

  void operator()(KernelContext& context) const {
    VariableState& variable = detail::variable_input(context, 0, dtype_of<T>);
    if (attrs.begins_at_zero && !variable.is_initialized()) variable.assign_first(Tensor<T>(T(0)));
    T before{};
    {
      VariableUpdate update({&variable});
      if (update.value(0).rank() != 0) context.fail(str_cat(variable.debug_string(), " is no scalar"));
      before = *Tensor<T>::of(update.value(0)).data();
      if (static_cast<std::int64_t>(before) >= attrs.limit || before == std::numeric_limits<T>::max()) {
        throw_error(
            Status::out_of_range(str_cat("variable '", variable.name(), "' has reached its limit of ", attrs.limit)));
      }
      *Tensor<T>::of(update.writable(0, *context.device().allocator)).data() = static_cast<T>(before + 1);
    }
    *context.allocate_output<T>(0, {}).data() = before;
  }
};

}  // namespace dflow
