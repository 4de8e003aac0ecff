#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/random/candidates.hpp>
#include <dflow/ops/random/multinomial.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/ops/random/shuffle.hpp>

namespace dflow {

/// The family's ops in the standard table.
using RandomOps = TypeList<RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, RandomShuffle,
                           Multinomial, UniformCandidateSampler, LogUniformCandidateSampler,
                           LearnedUnigramCandidateSampler, ThreadUnsafeUnigramCandidateSampler,
                           FixedUnigramCandidateSampler, AllCandidateSampler, ComputeAccidentalHits>;

}  // namespace dflow
