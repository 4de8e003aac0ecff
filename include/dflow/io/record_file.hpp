#pragma once

/// This header has moved to <dflow/io/records/record_file.hpp>, and this place of it will go.

#include <dflow/io/records/record_file.hpp>

#pragma message("<dflow/io/record_file.hpp> has moved: include <dflow/io/records/record_file.hpp>")
