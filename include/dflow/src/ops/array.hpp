#pragma once

/// The CPU kernels of family array. Include it in the unit that has an op table of your own: the table compiles the
/// kernels that it names. table.

#include <dflow/src/bodies/array.hpp>
#include <dflow/src/bodies/cpu.hpp>
