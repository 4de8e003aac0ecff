#pragma once

#include <dflow/kernels/shared/list_output.hpp>

namespace dflow {

TensorList& forward_or_copy_list(KernelContext& context, int i, int o) {
  const TensorList& list = list_of(context.input(i));
  context.set_output(o, context.owns_input(i) ? context.input(i) : make_list(list));
  return *static_cast<TensorList*>(context.output(o).raw_data());
}

}  // namespace dflow
