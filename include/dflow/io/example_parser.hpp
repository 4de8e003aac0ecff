#pragma once

/// This header has moved to <dflow/io/records/example_parser.hpp>, and this place of it will go.

#include <dflow/io/records/example_parser.hpp>

#pragma message("<dflow/io/example_parser.hpp> has moved: include <dflow/io/records/example_parser.hpp>")
