#pragma once

/// Bodies of the CPU kernels of family send_recv; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/send_recv/list.hpp>
