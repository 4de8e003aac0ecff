#pragma once

#include <dflow/ops/math/compare.hpp>

namespace dflow {

Output<bool> logical_not(const Output<bool>& x, const At& at) { return apply<LogicalNot>(x, {}, at); }

}  // namespace dflow
