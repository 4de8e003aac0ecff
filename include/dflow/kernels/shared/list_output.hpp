#pragma once

#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/state/tensor_list.hpp>

namespace dflow {

/// Output `o` of the kernel: the list of input `i`, which the kernel changes. If nobody else has the list, it is not
/// copied. Errors: InvalidArgument if the input is no list.
TensorList& forward_or_copy_list(KernelContext& context, int i, int o);

}  // namespace dflow
