#pragma once

#include <dflow/core/shape.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

/// Parts of elementwise kernels that are common to all devices.
namespace dflow {

/// Output 0 of an elementwise kernel, of the given shape. It takes the buffer of an input with as many elements of
/// the same type if this is the last use of the input, else it is newly allocated.
AnyTensor& make_elementwise_output(KernelContext& context, int num_inputs, const Shape& shape);

/// The shape that the inputs broadcast to, or their one shape if the op does not broadcast.
/// Errors: InvalidArgument that names both shapes.
Shape broadcast_input_shapes(const KernelContext& context, int num_inputs, bool broadcasts);

}  // namespace dflow
