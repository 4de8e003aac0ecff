#pragma once

/// Public: all CPU kernels of family state, for programs that use the standard op table.

#include <dflow/src/units/kernels/state_scatters.hpp>
#include <dflow/src/units/kernels/state_updates.hpp>
#include <dflow/src/units/kernels/state_variables.hpp>
