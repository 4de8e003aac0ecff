#pragma once

/// This header has moved to <dflow/net/transport/sockets/asio_transport.hpp>; the old path will be removed.

#include <dflow/net/transport/sockets/asio_transport.hpp>

#pragma message( \
        "<dflow/net/asio/asio_transport.hpp> has moved: include <dflow/net/transport/sockets/asio_transport.hpp>")
