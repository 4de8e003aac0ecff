#pragma once

/// Bodies of the CPU kernels of family state; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/state/list.hpp>
#include <dflow/kernels/cpu/state/variable.ipp>
