#pragma once

#include <dflow/net/transport/transport.hpp>

namespace dflow::net {

Stream::~Stream() = default;
Listener::~Listener() = default;
Transport::~Transport() = default;

}  // namespace dflow::net
