#pragma once

/// The ops of family strings and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/strings.hpp>
#include <dflow/src/units/ops/strings.hpp>
