#pragma once

/// Bodies of the CPU kernels of family nn; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/nn/list.hpp>
