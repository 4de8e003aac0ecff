#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/io/json/reader.ipp>
#include <dflow/io/json/value.ipp>
#include <dflow/io/json/writer.ipp>
