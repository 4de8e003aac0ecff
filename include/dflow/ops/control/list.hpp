#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/no_op.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ControlOps = TypeList<NoOp, Assert, CheckNumerics>;

}  // namespace dflow
