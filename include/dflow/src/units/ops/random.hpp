#pragma once

/// Bodies of the ops of family random.

#include <dflow/ops/random/candidates.ipp>
#include <dflow/ops/random/multinomial.ipp>
#include <dflow/ops/random/random.ipp>
#include <dflow/ops/random/shuffle.ipp>
