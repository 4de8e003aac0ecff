#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/send_recv/send_recv.hpp>
#include <dflow/ops/send_recv/list.hpp>
