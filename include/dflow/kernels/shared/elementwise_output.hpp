#pragma once

#include <dflow/core/shape.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

/// What the kernels of elementwise ops have in common on all devices.
namespace dflow {

/// Output 0 of such a kernel, of the given shape: in the buffer of an input with as many elements of the same type if
/// that is the last use of it, else newly allocated.
AnyTensor& make_elementwise_output(KernelContext& context, int num_inputs, const Shape& shape);

/// The shape that the inputs broadcast to, or their one shape where the op does not broadcast.
/// Errors: InvalidArgument that names both shapes.
Shape broadcast_input_shapes(const KernelContext& context, int num_inputs, bool broadcasts);

}  // namespace dflow
