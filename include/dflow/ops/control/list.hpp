#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/cond.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/control/function.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/control/print.hpp>
#include <dflow/ops/control/row_loops.hpp>
#include <dflow/ops/control/tensor_array.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/control/while_loop.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ControlOps =
    TypeList<NoOp, Assert, CheckNumerics, EnsureShape, Print, FunctionBegin, FunctionArgument, FunctionResults,
             CallFunction, If, Case, While, Frames, Switch, Merge, Enter, Exit, NextIteration, LoopCond, KeptValue,
             KeptList, KeptListPush, KeptCount, CallTape, KeptElement, KeptHandleElement, KeptListElement,
             EmptyTensorList, TensorListReserve, TensorListLength, TensorListResize, TensorListFromTensor,
             TensorListStack, TensorListConcatV2, TensorListSplit, TensorListToTensor, TensorListGetItem,
             TensorListSetItem, TensorListPushBack, TensorListPopBack, TensorListGather, TensorListGatherRows,
             TensorListScatter, TensorListSum, TensorListOne, TensorListOneList, TensorListUnset>;

}  // namespace dflow
