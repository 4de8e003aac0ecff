#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/checkpoint/resource_state.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.hpp>
#include <dflow/ops/checkpoint/list.hpp>
