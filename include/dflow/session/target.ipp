#pragma once

#include <dflow/session/target.hpp>

namespace dflow {

DFLOW_INLINE RemoteShare::~RemoteShare() = default;
DFLOW_INLINE RemoteTasks::~RemoteTasks() = default;
DFLOW_INLINE SessionTarget::~SessionTarget() = default;

}  // namespace dflow
