#pragma once

/// The ops of family random and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/random.hpp>
#include <dflow/src/units/ops/random.hpp>
