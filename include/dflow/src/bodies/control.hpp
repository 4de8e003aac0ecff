#pragma once

/// Bodies of the CPU kernels of family control. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/control/list.hpp>
#include <dflow/kernels/cpu/control/print.ipp>
