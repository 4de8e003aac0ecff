#pragma once

/// Public: all CPU kernels of family summary, for programs that use the standard op table.

#include <dflow/src/units/kernels/summary.hpp>
