#pragma once

/// Bodies of the CPU kernels of family checkpoint; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/checkpoint/list.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.ipp>
