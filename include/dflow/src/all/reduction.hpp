#pragma once

/// Public: all CPU kernels of family reduction, for programs that use the standard op table.

#include <dflow/src/units/kernels/reduction.hpp>
