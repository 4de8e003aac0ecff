#pragma once

#include <dflow/session/target.hpp>

namespace dflow {

DFLOW_INLINE RemoteShare::~RemoteShare() = default;
DFLOW_INLINE RemoteTasks::~RemoteTasks() = default;
DFLOW_INLINE RemotePartialRun::~RemotePartialRun() = default;
DFLOW_INLINE RemoteStep::~RemoteStep() = default;
DFLOW_INLINE RemoteSession::~RemoteSession() = default;
DFLOW_INLINE SessionTarget::~SessionTarget() = default;

DFLOW_INLINE std::unique_ptr<RemoteSession> SessionTarget::open_session(const GraphStore&, const SessionOptions&) {
  return nullptr;
}

}  // namespace dflow
