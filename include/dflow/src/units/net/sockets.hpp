#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/transport/sockets/asio_address.ipp>
#include <dflow/net/transport/sockets/asio_transport.ipp>
