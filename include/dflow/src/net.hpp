#pragma once

/// Public: bodies of the cluster: transports, protocol, master, worker and server. They need Asio on the include path.

#include <dflow/src/units/net/cluster.hpp>
#include <dflow/src/units/net/protocol.hpp>
#include <dflow/src/units/net/server.hpp>
#include <dflow/src/units/net/simulation.hpp>
#include <dflow/src/units/net/sockets.hpp>
