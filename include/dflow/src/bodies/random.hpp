#pragma once

/// Bodies of the CPU kernels of family random. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/random/candidates.ipp>
#include <dflow/kernels/cpu/random/list.hpp>
#include <dflow/kernels/cpu/random/multinomial.ipp>
