#pragma once

/// Bodies of the CPU kernels of family send_recv. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/send_recv/list.hpp>
