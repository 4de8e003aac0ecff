#pragma once

/// Bodies of the CPU kernels of family parsing. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/parsing/decode_csv.ipp>
#include <dflow/kernels/cpu/parsing/decode_raw.ipp>
#include <dflow/kernels/cpu/parsing/list.hpp>
#include <dflow/kernels/cpu/parsing/parse_example.ipp>
