#pragma once

#include <dflow/kernels/kernel_context.hpp>

namespace dflow::detail {

/// The shape of output `o` as the op's own shape function gives it for the step's input shapes and values: a kernel
/// that calls this repeats none of its op's checks. Allocates nothing for up to 8 inputs and outputs.
///
/// Errors: what the shape function refuses; InvalidArgument if it leaves the shape open.
Shape inferred_shape(const KernelContext& context, int o = 0);

}  // namespace dflow::detail

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/inferred_shape.ipp>
#endif
