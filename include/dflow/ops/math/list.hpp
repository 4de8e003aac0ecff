#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/math/matmul.hpp>

namespace dflow {

/// The family's ops in the standard table.
using MathOps = TypeList<MatMul>;

}  // namespace dflow
