#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/data_flow/accumulator.hpp>
#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/ops/data_flow/staging.hpp>
#include <dflow/ops/data_flow/staleness_clock.hpp>
#include <dflow/ops/data_flow/token_barrier.hpp>

namespace dflow {

using AccumulatorOps =
    TypeList<ConditionalAccumulator, SparseConditionalAccumulator, AccumulatorApplyGradient,
             SparseAccumulatorApplyGradient, AccumulatorTakeGradient, SparseAccumulatorTakeGradient,
             AccumulatorTakeRanks, SparseAccumulatorTakeRanks, AccumulatorSetGlobalStep, AccumulatorNumAccumulated>;

using QueueOps =
    TypeList<FIFOQueue, PaddingFIFOQueueV2, RandomShuffleQueueV2, PriorityQueueV2, QueueEnqueue, QueueEnqueueMany,
             QueueDequeue, QueueDequeueMany, QueueDequeueUpTo, QueueClose, QueueIsClosed, QueueSize>;

using BarrierOps =
    TypeList<BarrierOp, BarrierInsertMany, BarrierTakeMany, BarrierClose, BarrierReadySize, BarrierIncompleteSize>;

using StagingOps = TypeList<StagingAreaOp, Stage, Unstage, StageSize, StageClear>;

using LookupTableOps =
    TypeList<MutableHashTableOp, HashTableOp, LookupTableFind, LookupTableInsert, LookupTableRemove, LookupTableSize,
             LookupTableExport, LookupTableImport, InitializeTable, InitializeTableFromTextFile>;

using TokenBarrierOps =
    TypeList<TokenBarrier, TokenBarrierOpen, TokenBarrierArrive, TokenBarrierWait, TokenBarrierCollect,
             TokenBarrierAdvance, TokenBarrierLeave, TokenBarrierDropMissing, TokenBarrierHold, TokenBarrierClose>;

using StalenessClockOps =
    TypeList<StalenessClock, StalenessClockJoin, StalenessClockLead, StalenessClockWait, StalenessClockTick,
             StalenessClockLeave, StalenessClockWatch, StalenessClockDropLate>;

using PartitionOps = TypeList<DynamicPartition, DynamicStitch, ShardOfRow>;

/// The family's ops in the standard table.
using DataFlowOps = concat_t<QueueOps, BarrierOps, StagingOps, LookupTableOps, AccumulatorOps, TokenBarrierOps,
                             StalenessClockOps, PartitionOps>;

}  // namespace dflow
