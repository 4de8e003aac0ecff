#pragma once

/// Public: all CPU kernels of family math, for programs that use the standard op table.

#include <dflow/src/units/kernels/math_arithmetic.hpp>
#include <dflow/src/units/kernels/math_conversions.hpp>
#include <dflow/src/units/kernels/math_functions.hpp>
#include <dflow/src/units/kernels/math_products.hpp>
