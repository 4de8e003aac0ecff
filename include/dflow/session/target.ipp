#pragma once

#include <dflow/session/target.hpp>

namespace dflow {

RemoteShare::~RemoteShare() = default;
RemoteTasks::~RemoteTasks() = default;
RemotePartialRun::~RemotePartialRun() = default;
RemoteStep::~RemoteStep() = default;
RemoteSession::~RemoteSession() = default;
SessionTarget::~SessionTarget() = default;

std::unique_ptr<RemoteSession> SessionTarget::open_session(const GraphStore&, const SessionOptions&) { return nullptr; }
void SessionTarget::note_step(Code) noexcept {}

}  // namespace dflow
