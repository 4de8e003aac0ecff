#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/image/axis_taps.hpp>
#include <dflow/kernels/cpu/image/boxes.hpp>
#include <dflow/kernels/cpu/image/resize.hpp>
#include <dflow/ops/image/list.hpp>
