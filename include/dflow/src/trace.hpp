#pragma once

/// Bodies of traces, event files and drawings.

#include <dflow/src/units/trace/trace.hpp>
