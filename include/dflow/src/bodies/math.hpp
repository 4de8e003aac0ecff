#pragma once

/// Bodies of the CPU kernels of family math. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/math/broadcast.ipp>
#include <dflow/kernels/cpu/math/list.hpp>
