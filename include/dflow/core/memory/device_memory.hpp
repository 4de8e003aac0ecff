#pragma once

/// Public: this header has moved to <dflow/core/device_memory.hpp>, and the old path will be removed.

#include <dflow/core/device_memory.hpp>

#pragma message("<dflow/core/memory/device_memory.hpp> has moved: include <dflow/core/device_memory.hpp>")
