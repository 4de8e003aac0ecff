#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/array/constant.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ArrayOps = TypeList<Const, Placeholder>;

}  // namespace dflow
