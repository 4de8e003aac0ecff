#pragma once

/// Bodies of the CPU kernels of family state. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/state/list.hpp>
#include <dflow/kernels/cpu/state/update.ipp>
#include <dflow/kernels/cpu/state/variable.ipp>
