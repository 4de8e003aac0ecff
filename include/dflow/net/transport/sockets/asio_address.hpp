#pragma once

#include <cstdint>
#include <string>

namespace dflow::net::detail {

/// An address as AsioTransport understands it.
struct AsioAddress {
  enum class Scheme { tcp, unix_socket, tls };

  Scheme scheme = Scheme::tcp;
  std::string host;  ///< without brackets; of a Unix socket its path, or '@' and its name
  std::uint16_t port = 0;

  /// With its scheme, brackets and port.
  std::string text() const;
};

/// Errors: InvalidArgument, quoting the address.
AsioAddress parse_asio_address(const std::string& address);

}  // namespace dflow::net::detail
