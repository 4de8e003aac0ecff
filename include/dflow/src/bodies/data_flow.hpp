#pragma once

/// Bodies of the CPU kernels of family data_flow. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/data_flow/accumulator.ipp>
#include <dflow/kernels/cpu/data_flow/barrier.ipp>
#include <dflow/kernels/cpu/data_flow/list.hpp>
#include <dflow/kernels/cpu/data_flow/lookup_table.ipp>
#include <dflow/kernels/cpu/data_flow/queue.ipp>
#include <dflow/kernels/cpu/data_flow/staleness_clock.ipp>
#include <dflow/kernels/cpu/data_flow/token_barrier.ipp>
