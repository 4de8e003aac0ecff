#pragma once

/// Bodies of the CPU kernels of family io. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/io/files.ipp>
#include <dflow/kernels/cpu/io/list.hpp>
#include <dflow/kernels/cpu/io/reader.ipp>
