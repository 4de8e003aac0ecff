#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/data_flow/accumulator.hpp>
#include <dflow/kernels/cpu/data_flow/barrier.hpp>
#include <dflow/kernels/cpu/data_flow/lookup_table.hpp>
#include <dflow/kernels/cpu/data_flow/partition.hpp>
#include <dflow/kernels/cpu/data_flow/queue.hpp>
#include <dflow/kernels/cpu/data_flow/staging.hpp>
#include <dflow/kernels/cpu/data_flow/staleness_clock.hpp>
#include <dflow/kernels/cpu/data_flow/token_barrier.hpp>
#include <dflow/ops/data_flow/list.hpp>
