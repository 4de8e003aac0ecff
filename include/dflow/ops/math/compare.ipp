#pragma once

#include <dflow/ops/math/compare.hpp>

namespace dflow {

Output<bool> logical_and(const Output<bool>& a, const Output<bool>& b, const At& at) {
  return apply<LogicalAnd>(a, b, {}, at);
}

Output<bool> logical_or(const Output<bool>& a, const Output<bool>& b, const At& at) {
  return apply<LogicalOr>(a, b, {}, at);
}

Output<bool> logical_not(const Output<bool>& x, const At& at) { return apply<LogicalNot>(x, {}, at); }

}  // namespace dflow
