#pragma once

/// Public: all CPU kernels of family random, for programs that use the standard op table.

#include <dflow/src/units/kernels/random.hpp>
