#pragma once

/// The ops of family array and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/array.hpp>
#include <dflow/src/units/ops/array.hpp>
