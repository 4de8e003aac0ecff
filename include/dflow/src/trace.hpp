#pragma once

/// Public: bodies of traces, event files and drawings.

#include <dflow/src/units/trace/trace.hpp>
