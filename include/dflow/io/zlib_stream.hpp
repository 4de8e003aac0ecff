#pragma once

/// Compressed bytes, packed and unpacked as they come.

#include <dflow/base/records/zlib_stream.hpp>
