#pragma once

#include <dflow/op/op_table.hpp>
#include <dflow/ops/array/list.hpp>
#include <dflow/ops/checkpoint/list.hpp>
#include <dflow/ops/collective/list.hpp>
#include <dflow/ops/control/list.hpp>
#include <dflow/ops/data_flow/list.hpp>
#include <dflow/ops/image/list.hpp>
#include <dflow/ops/io/list.hpp>
#include <dflow/ops/linalg/list.hpp>
#include <dflow/ops/math/list.hpp>
#include <dflow/ops/nn/list.hpp>
#include <dflow/ops/parsing/list.hpp>
#include <dflow/ops/random/list.hpp>
#include <dflow/ops/reduction/list.hpp>
#include <dflow/ops/send_recv/list.hpp>
#include <dflow/ops/sparse/list.hpp>
#include <dflow/ops/state/list.hpp>
#include <dflow/ops/strings/list.hpp>
#include <dflow/ops/summary/list.hpp>

namespace dflow {

/// Every op of the library, by family. Only the unit that makes the standard table folds it.
using StandardOps =
    concat_t<ArrayOps, MathOps, LinalgOps, NnOps, ImageOps, ReductionOps, RandomOps, StateOps, SparseOps, DataFlowOps,
             ControlOps, CheckpointOps, IoOps, SendRecvOps, CollectiveOps, StringsOps, ParsingOps, SummaryOps>;

}  // namespace dflow
