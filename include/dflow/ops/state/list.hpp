#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/state/count.hpp>
#include <dflow/ops/state/session_tensors.hpp>
#include <dflow/ops/state/temporary_variable.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

namespace dflow {

using VariableOps = TypeList<VariableOp, ReadVariable, Assign, AssignAdd, AssignSub, IsVariableInitialized,
                             StridedSliceAssign, CountUpTo, TemporaryVariableOp, DestroyTemporaryVariable,
                             SessionTensorsOp, GetSessionHandle, GetSessionTensor, DeleteSessionTensor>;

/// Updates of rows.
using ScatterOps = TypeList<ScatterUpdate, ScatterAdd, ScatterSub, ScatterMul, ScatterDiv, ScatterMin, ScatterMax>;

/// The steps of optimizers.
using UpdateOps =
    TypeList<ApplyGradientDescent, ApplyMomentum, ApplyAdam, ApplyAdagrad, ApplyAdadelta, ApplyFtrl, ApplyRMSProp,
             ApplyCenteredRMSProp, SparseApplyGradientDescent, SparseApplyMomentum, SparseApplyAdam, SparseApplyAdagrad,
             SparseApplyAdadelta, SparseApplyFtrl, SparseApplyRMSProp, SparseApplyCenteredRMSProp>;

/// The family's ops in the standard table.
using StateOps = concat_t<VariableOps, ScatterOps, UpdateOps>;

}  // namespace dflow
