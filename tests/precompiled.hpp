// What most test units read: Catch2, and in compiled mode the library's headers, without their bodies.
#pragma once

#include "catch.hpp"

#if !defined(DFLOW_HEADER_ONLY)
#include <dflow/dflow.hpp>
#endif
