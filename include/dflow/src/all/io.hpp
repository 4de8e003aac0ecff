#pragma once

/// The ops of family io and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/io.hpp>
#include <dflow/src/units/ops/io.hpp>
