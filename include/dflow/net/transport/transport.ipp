#pragma once

#include <dflow/net/transport/transport.hpp>

namespace dflow::net {

DFLOW_INLINE Stream::~Stream() = default;
DFLOW_INLINE Listener::~Listener() = default;
DFLOW_INLINE Transport::~Transport() = default;

}  // namespace dflow::net
