#pragma once

/// Public: the version of the library, as macros.

#define DFLOW_VERSION_MAJOR 0
#define DFLOW_VERSION_MINOR 1
#define DFLOW_VERSION_PATCH 0
#define DFLOW_VERSION_STRING "0.1.0"

/// One number to compare in the preprocessor: `#if DFLOW_VERSION >= 100` is "0.1.0 or later".
#define DFLOW_VERSION (DFLOW_VERSION_MAJOR * 10000 + DFLOW_VERSION_MINOR * 100 + DFLOW_VERSION_PATCH)
