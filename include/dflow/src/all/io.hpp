#pragma once

/// Public: all CPU kernels of family io, for programs that use the standard op table.

#include <dflow/src/units/kernels/io.hpp>
