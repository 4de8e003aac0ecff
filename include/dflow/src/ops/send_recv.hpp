#pragma once

/// The CPU kernels of family send_recv. Include it in the unit that has an op table of your own: the table compiles the
/// kernels that it names. the table.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/send_recv.hpp>
