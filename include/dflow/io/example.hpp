#pragma once

/// This header has moved to <dflow/io/records/example.hpp>, and this place of it will go.

#include <dflow/io/records/example.hpp>

#pragma message("<dflow/io/example.hpp> has moved: include <dflow/io/records/example.hpp>")
