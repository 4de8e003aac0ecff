#pragma once

/// This header has moved to <dflow/io/records/example.hpp>, and the old path will be removed.

#include <dflow/io/records/example.hpp>

#pragma message("<dflow/core/records/example.hpp> has moved: include <dflow/io/records/example.hpp>")
