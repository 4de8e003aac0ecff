#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

namespace dflow {

/// The family's ops in the standard table.
using StateOps = TypeList<VariableOp, ReadVariable, Assign, AssignAdd, AssignSub, ScatterAdd, ScatterSub, IsVariableInitialized,
                          ApplyGradientDescent, ApplyMomentum, ApplyAdam, SparseApplyGradientDescent, SparseApplyMomentum,
                          SparseApplyAdam>;

}  // namespace dflow
