#pragma once

/// The ops of family collective and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/ops/collective.hpp>
