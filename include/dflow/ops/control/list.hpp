#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/cond.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/function.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/control/while_loop.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ControlOps = TypeList<NoOp, Assert, CheckNumerics, EnsureShape, FunctionBegin, FunctionArgument,
                            FunctionHandleArgument, FunctionResults, CallFunction, If, Case, While, KeptValue,
                            KeptHandle, KeptList, KeptCount, KeptElement, KeptHandleElement>;

}  // namespace dflow
