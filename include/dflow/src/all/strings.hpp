#pragma once

/// Public: all CPU kernels of family strings, for programs that use the standard op table.

#include <dflow/src/units/kernels/strings.hpp>
