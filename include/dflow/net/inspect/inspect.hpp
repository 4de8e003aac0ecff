#pragma once

/// This header has moved to <dflow/net/client/inspect.hpp>; the old path will be removed.

#include <dflow/net/client/inspect.hpp>

#pragma message("<dflow/net/inspect/inspect.hpp> has moved: include <dflow/net/client/inspect.hpp>")
