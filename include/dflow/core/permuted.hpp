#pragma once

#include <dflow/core/any_tensor.hpp>

#include <span>

namespace dflow {

/// The tensor with its dimensions in another order, with new elements: dimension i of the result is dimension axes[i]
/// of `tensor`, as by numpy.transpose(tensor, axes).
///
/// Errors: InvalidArgument, naming the shape, unless `axes` has each dimension once.
AnyTensor permuted(const AnyTensor& tensor, std::span<const int> axes);

}  // namespace dflow
