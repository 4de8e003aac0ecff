#pragma once

#include <dflow/base/strong_index.hpp>

namespace dflow {

/// The number of a unit, a stretch of nodes that one thread runs in one go, among those of a plan.
using UnitId = StrongIndex<struct UnitTag>;

}  // namespace dflow
