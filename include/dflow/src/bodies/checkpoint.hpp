#pragma once

/// Bodies of the CPU kernels of family checkpoint. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/checkpoint/list.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.ipp>
