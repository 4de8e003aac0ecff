#pragma once

#include <dflow/graph/output.hpp>

#include <cstdint>
#include <functional>

namespace dflow {

/// Makes the initial value of a variable: an edge of that element type and shape.
using Initializer = std::function<AnyOutput(GraphStore& graph, DType dtype, const Shape& shape)>;

/// What layers initialise their variables with. A seed of 0 is drawn from the graph's seed.
///
/// Fans: the last two dimensions of a shape are its inputs and outputs, those before (the window of a filter) multiply
/// both.
namespace init {

Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer uniform(double minval, double maxval, std::uint64_t seed = 0);
Initializer normal(double stddev, std::uint64_t seed = 0);
Initializer truncated_normal(double stddev, std::uint64_t seed = 0);
/// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Initializer glorot_uniform(std::uint64_t seed = 0);
/// Truncated normal of variance 2 / fan_in (He et al. 2015, arXiv:1502.01852).
Initializer he_normal(std::uint64_t seed = 0);

}  // namespace init

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/initializers.ipp>
#endif
