#pragma once

/// Public: all CPU kernels of family image, for programs that use the standard op table.

#include <dflow/src/units/kernels/image.hpp>
