#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/control/check.hpp>
#include <dflow/kernels/cpu/control/no_op.hpp>
#include <dflow/kernels/cpu/control/print.hpp>
#include <dflow/kernels/cpu/control/tensor_list.hpp>
#include <dflow/ops/control/list.hpp>
