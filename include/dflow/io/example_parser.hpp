#pragma once

/// Tensors of serialised examples: the floor below has it, since ops do the same.

#include <dflow/core/records/example_parser.hpp>
