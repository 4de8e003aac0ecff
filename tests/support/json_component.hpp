// Whether the library under test reads and writes JSON.
#pragma once

#include <dflow/base/status.hpp>
#include <dflow/graph/graph_def_json.hpp>

namespace dflow::testing {

/// False for a library built without nlohmann-json, which says Unimplemented.
inline bool has_json() {
  try {
    return !to_json(GraphDef()).empty();
  } catch (const Error& error) {
    if (error.code() != Code::unimplemented) throw;
    return false;
  }
}

}  // namespace dflow::testing
