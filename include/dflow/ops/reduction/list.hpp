#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/segment.hpp>

namespace dflow {

/// The family's ops in the standard table: over axes, segments or inputs.
using ReductionOps = TypeList<Sum, Mean, Prod, Max, Min, All, Any, ArgMax, ArgMin, ReducedShape, ExclusiveProd,
                              ExclusiveProdGrad, AddN, UnsortedSegmentSum>;

}  // namespace dflow
