#pragma once

/// Public: all CPU kernels of family send_recv, for programs that use the standard op table.

#include <dflow/src/units/kernels/send_recv.hpp>
