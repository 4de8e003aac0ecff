#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/complex.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

/// Conversions of element type, of elements between two tensors, and of shape. The other elementwise ops are listed in
/// their headers.
using ConversionOps = TypeList<Select, Cast, BroadcastTo, SumToShape>;

using ProductOps = TypeList<MatMul, BatchMatMul>;

/// The family's ops in the standard table.
using MathOps = concat_t<UnaryOps, UnaryGradientOps, TrigonometricOps, SpecialOps, BinaryOps, PowerOps, ComparisonOps,
                         LogicalOps, ConversionOps, ComplexOps, ProductOps>;

}  // namespace dflow
