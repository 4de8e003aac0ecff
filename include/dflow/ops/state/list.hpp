#pragma once

#include <dflow/base/type_list.hpp>

namespace dflow {

/// The family's ops in the standard table.
using StateOps = TypeList<>;

}  // namespace dflow
