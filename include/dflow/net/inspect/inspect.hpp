#pragma once

/// This header has moved to <dflow/net/client/inspect.hpp>, and this place of it will go.

#include <dflow/net/client/inspect.hpp>

#pragma message("<dflow/net/inspect/inspect.hpp> has moved: include <dflow/net/client/inspect.hpp>")
