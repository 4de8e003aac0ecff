#pragma once

/// The ops of family control and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/control.hpp>
#include <dflow/src/units/ops/control.hpp>
