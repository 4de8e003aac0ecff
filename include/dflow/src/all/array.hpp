#pragma once

/// Public: all CPU kernels of family array, for programs that use the standard op table.

#include <dflow/src/units/kernels/array.hpp>
