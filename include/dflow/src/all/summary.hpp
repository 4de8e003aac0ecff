#pragma once

/// The ops of family summary and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/summary.hpp>
#include <dflow/src/units/ops/summary.hpp>
