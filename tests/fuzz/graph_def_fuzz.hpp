#pragma once

#include <dflow/graph/graph_def.hpp>

#include <cstdlib>

namespace dflow::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Imports a graph that a fuzz target has read; a graph that imports must come back unchanged. Then steps of it go
/// through what a session makes of functions and of raw control flow, and what another task makes of its part.
void import(const GraphDef& def);

}  // namespace dflow::fuzz
