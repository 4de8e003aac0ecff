#pragma once

/// Public: all CPU kernels of family sparse, for programs that use the standard op table.

#include <dflow/src/units/kernels/sparse.hpp>
