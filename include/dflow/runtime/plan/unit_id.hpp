#pragma once

#include <dflow/base/strong_index.hpp>

namespace dflow {

/// The number of a unit within a plan. A unit is a stretch of nodes that one thread runs in one go.
using UnitId = StrongIndex<struct UnitTag>;

}  // namespace dflow
