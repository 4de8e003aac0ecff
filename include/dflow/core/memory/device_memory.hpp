#pragma once

/// Public: this header has moved to <dflow/core/device_memory.hpp>, and this place of it will go.

#include <dflow/core/device_memory.hpp>

#pragma message("<dflow/core/memory/device_memory.hpp> has moved: include <dflow/core/device_memory.hpp>")
