#pragma once

/// The ops of family io, for a program whose own op table names some of them: include it in the unit that has the
/// table.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/io.hpp>
#include <dflow/src/units/ops/io.hpp>
