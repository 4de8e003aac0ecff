#pragma once

/// Public: all CPU kernels of family control, for programs that use the standard op table.

#include <dflow/src/units/kernels/control.hpp>
