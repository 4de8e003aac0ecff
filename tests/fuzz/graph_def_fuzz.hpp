#pragma once

#include <dflow/graph/graph_def.hpp>

#include <cstdlib>

namespace dflow::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Imports a graph that a fuzz target has read; a graph that imports must come back unchanged. Then steps of the graph
/// go through a session's passes for functions and raw control flow, and through another task's import of its part.
void import(const GraphDef& def);

}  // namespace dflow::fuzz
