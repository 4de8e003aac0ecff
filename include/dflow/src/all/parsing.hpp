#pragma once

/// Public: all CPU kernels of family parsing, for programs that use the standard op table.

#include <dflow/src/units/kernels/parsing.hpp>
