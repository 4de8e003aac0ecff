#pragma once

#include <source_location>

namespace dflow {

/// The place in the user's program where a node was built. A default-constructed one (line 0) means "not known".
using SourceLocation = std::source_location;

}  // namespace dflow
