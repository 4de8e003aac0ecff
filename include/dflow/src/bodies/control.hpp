#pragma once

/// Bodies of the CPU kernels of family control; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/control/list.hpp>
#include <dflow/kernels/cpu/control/print.ipp>
