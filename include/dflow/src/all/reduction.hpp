#pragma once

/// The ops of family reduction and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/reduction.hpp>
#include <dflow/src/units/ops/reduction.hpp>
