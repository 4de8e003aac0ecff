#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/random/candidates.hpp>
#include <dflow/kernels/cpu/random/multinomial.hpp>
#include <dflow/kernels/cpu/random/random.hpp>
#include <dflow/kernels/cpu/random/shuffle.hpp>
#include <dflow/ops/random/list.hpp>
