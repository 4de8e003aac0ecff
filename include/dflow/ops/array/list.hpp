#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/shape.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ArrayOps = TypeList<Const, Placeholder, ZerosLike, OnesLike, Identity, StopGradient, ShapeOf, RankOf, SizeOf>;

}  // namespace dflow
