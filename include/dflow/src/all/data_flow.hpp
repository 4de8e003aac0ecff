#pragma once

/// Public: all CPU kernels of family data_flow, for programs that use the standard op table.

#include <dflow/src/units/kernels/data_flow.hpp>
