#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/state/count.hpp>
#include <dflow/kernels/cpu/state/session_tensors.hpp>
#include <dflow/kernels/cpu/state/update.hpp>
#include <dflow/kernels/cpu/state/variable.hpp>
#include <dflow/ops/state/list.hpp>
