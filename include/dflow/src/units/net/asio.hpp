#pragma once

/// Bodies of the cluster: a part of <dflow/src/net.hpp>.

#include <dflow/net/asio/asio_address.ipp>
#include <dflow/net/asio/asio_transport.ipp>
