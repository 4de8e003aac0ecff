#pragma once

/// This header has moved to <dflow/net/client/remote_master.hpp>, and this place of it will go.

#include <dflow/net/client/remote_master.hpp>

#pragma message("<dflow/net/master/remote_master.hpp> has moved: include <dflow/net/client/remote_master.hpp>")
