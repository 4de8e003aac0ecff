#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/random/random.hpp>
#include <dflow/ops/random/list.hpp>
