#pragma once

/// The ops of family collective, for a program whose own op table names some of them: include it in the unit that has
/// the table.

#include <dflow/src/units/ops/collective.hpp>
