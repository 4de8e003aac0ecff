#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

namespace dflow {

using VariableOps =
    TypeList<VariableOp, ReadVariable, Assign, AssignAdd, AssignSub, ScatterAdd, ScatterSub, IsVariableInitialized>;

/// The steps of optimizers.
using UpdateOps = TypeList<ApplyGradientDescent, ApplyMomentum, ApplyAdam, SparseApplyGradientDescent,
                           SparseApplyMomentum, SparseApplyAdam>;

/// The family's ops in the standard table.
using StateOps = concat_t<VariableOps, UpdateOps>;

}  // namespace dflow
