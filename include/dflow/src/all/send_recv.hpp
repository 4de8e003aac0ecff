#pragma once

/// The ops of family send_recv and their CPU kernels, for programs that use the standard op table.

#include <dflow/src/units/kernels/send_recv.hpp>
#include <dflow/src/units/ops/send_recv.hpp>
