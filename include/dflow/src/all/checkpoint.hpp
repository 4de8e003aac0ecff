#pragma once

/// Public: all CPU kernels of family checkpoint, for programs that use the standard op table.

#include <dflow/src/units/kernels/checkpoint.hpp>
