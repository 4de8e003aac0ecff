#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/random/random.hpp>

namespace dflow {

/// The family's ops in the standard table.
using RandomOps = TypeList<RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal>;

}  // namespace dflow
