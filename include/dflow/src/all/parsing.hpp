#pragma once

/// The ops of family parsing and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/parsing.hpp>
#include <dflow/src/units/ops/parsing.hpp>
