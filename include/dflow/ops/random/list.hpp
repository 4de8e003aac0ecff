#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/ops/random/shuffle.hpp>

namespace dflow {

/// The family's ops in the standard table.
using RandomOps = TypeList<RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, RandomShuffle>;

}  // namespace dflow
