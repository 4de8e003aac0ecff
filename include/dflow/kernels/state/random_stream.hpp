#pragma once

/// This header has moved to <dflow/state/random_stream.hpp>, and this place of it will go.

#include <dflow/state/random_stream.hpp>

#pragma message("<dflow/kernels/state/random_stream.hpp> has moved: include <dflow/state/random_stream.hpp>")
