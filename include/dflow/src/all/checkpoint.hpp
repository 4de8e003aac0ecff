#pragma once

/// The ops of family checkpoint and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/checkpoint.hpp>
#include <dflow/src/units/ops/checkpoint.hpp>
