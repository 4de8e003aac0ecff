#pragma once

/// The ops of family data_flow and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/data_flow.hpp>
#include <dflow/src/units/ops/data_flow.hpp>
