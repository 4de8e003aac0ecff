#pragma once

/// The ops of family state and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/state_scatters.hpp>
#include <dflow/src/units/kernels/state_updates.hpp>
#include <dflow/src/units/kernels/state_variables.hpp>
#include <dflow/src/units/ops/state.hpp>
