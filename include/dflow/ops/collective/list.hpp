#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/collective/collective.hpp>

namespace dflow {

/// The family's ops in the standard table.
using CollectiveOps = TypeList<AllReduce, AllGather, CollectiveBroadcast>;

}  // namespace dflow
