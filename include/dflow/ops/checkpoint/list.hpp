#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/checkpoint/resource_state.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>

namespace dflow {

/// The family's ops in the standard table.
using CheckpointOps =
    TypeList<SaveV2, RestoreV2, MergeV2Checkpoints, RandomStreamHandle, ReadResourceState, AssignResourceState>;

}  // namespace dflow
