#pragma once

/// This header has moved to <dflow/net/client/remote_master.hpp>; the old path will be removed.

#include <dflow/net/client/remote_master.hpp>

#pragma message("<dflow/net/master/remote_master.hpp> has moved: include <dflow/net/client/remote_master.hpp>")
