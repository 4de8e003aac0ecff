#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <span>

namespace dflow::detail {

/// Lends the shapes that the op's own shape function gives its outputs for the step's input shapes and values.
/// Allocates nothing for up to 8 inputs and outputs.
///
/// Errors: errors of the shape function.
void with_inferred_shapes(const KernelContext& context, FunctionRef<void(std::span<const PartialShape>)> take);

/// The shape of output `o`, from the op's own shape function for the step's input shapes and values. A kernel that
/// calls this repeats none of its op's checks. Allocates nothing for up to 8 inputs and outputs.
///
/// Errors: errors of the shape function; InvalidArgument if it leaves the shape open, or there is no such output.
Shape inferred_shape(const KernelContext& context, int o = 0);

/// Throws the error of the op's own shape function for the step's input shapes, for a kernel that cannot compute with
/// them. One mistake always has the same text. Internal if the shape function accepts the shapes.
[[noreturn]] void refuse_shapes(const KernelContext& context);

}  // namespace dflow::detail
