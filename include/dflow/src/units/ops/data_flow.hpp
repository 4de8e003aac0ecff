#pragma once

/// Bodies of the ops of family data_flow.

#include <dflow/ops/data_flow/accumulator.ipp>
#include <dflow/ops/data_flow/barrier.ipp>
#include <dflow/ops/data_flow/embedding.ipp>
#include <dflow/ops/data_flow/lookup_table.ipp>
#include <dflow/ops/data_flow/partition.ipp>
#include <dflow/ops/data_flow/queue.ipp>
#include <dflow/ops/data_flow/queue_kinds.ipp>
#include <dflow/ops/data_flow/staging.ipp>
#include <dflow/ops/data_flow/staleness_clock.ipp>
#include <dflow/ops/data_flow/token_barrier.ipp>
