#pragma once

/// Public: the CPU kernels of family image. Include it in the unit that has an op table of your own: the table
/// compiles the kernels that it names.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/image.hpp>
