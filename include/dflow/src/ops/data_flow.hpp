#pragma once

/// The ops of family data_flow, for a program whose own op table names some of them: include it in the unit that has
/// the table.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/data_flow.hpp>
#include <dflow/src/units/ops/data_flow.hpp>
