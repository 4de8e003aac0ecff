#pragma once

/// All CPU kernels of family parsing, for programs that use the standard op table.

#include <dflow/src/units/kernels/parsing.hpp>
