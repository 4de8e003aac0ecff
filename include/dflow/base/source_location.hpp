#pragma once

#include <source_location>

namespace dflow {

/// Where a node was built in the user's program. A default-constructed one (line 0) means "not known".
using SourceLocation = std::source_location;

}  // namespace dflow
