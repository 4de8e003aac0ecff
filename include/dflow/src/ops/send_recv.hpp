#pragma once

/// The ops of family send_recv, for a program whose own op table names some of them: include it in the unit that has
/// the table.

#include <dflow/src/bodies/cpu.hpp>
#include <dflow/src/bodies/send_recv.hpp>
#include <dflow/src/units/ops/send_recv.hpp>
