#pragma once

/// The ops of family random, for a program whose own op table names some of them: include it in the unit that has the
/// table.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/random.hpp>
#include <dflow/src/units/ops/random.hpp>
