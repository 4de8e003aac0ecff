#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_address.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/un.h>

namespace dflow::net::detail {

std::string AsioAddress::text() const {
  if (scheme == Scheme::unix_socket) return "unix://" + host;
  const bool is_bracketed = host.find(':') != std::string::npos;
  const std::string_view name = scheme == Scheme::tls ? "tls" : "tcp";
  return str_cat(name, "://", is_bracketed ? "[" : "", host, is_bracketed ? "]" : "", ":", port);
}

AsioAddress parse_asio_address(const std::string& address) {
  const auto refuse = [&](std::string_view why) {
    throw_error(Status::invalid_argument(str_cat("'", address, "' is no address: ", why)));
  };
  if (address.find('\0') != std::string::npos)
    throw_error(Status::invalid_argument("an address cannot have a zero byte"));
  AsioAddress parsed;
  std::string_view rest = address;
  if (const std::size_t end = rest.find("://"); end != std::string_view::npos) {
    const std::string_view scheme = rest.substr(0, end);
    if (scheme == "tls") {
      parsed.scheme = AsioAddress::Scheme::tls;
    } else if (scheme == "unix") {
      parsed.scheme = AsioAddress::Scheme::unix_socket;
    } else if (scheme != "tcp") {
      refuse("it should begin with tcp://, unix:// or tls://");
    }
    rest.remove_prefix(end + 3);
  }
  if (parsed.scheme == AsioAddress::Scheme::unix_socket) {
    if (rest.empty() || rest == "@") refuse("there is no path");
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) refuse("the path is too long");
    parsed.host = rest;
    return parsed;
  }

  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) refuse("there is no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) refuse("only IPv6 addresses stand in brackets");
  } else if (host.find(':') != std::string_view::npos) {
    refuse("an IPv6 address stands in brackets");
  }
  const auto is_bad = [](char c) { return c <= ' ' || c == '/' || c == '[' || c == ']' || c == '@' || c == '\x7f'; };
  if (host.empty()) refuse("there is no host");
  if (host.size() > 255 || std::any_of(host.begin(), host.end(), is_bad)) refuse("the host is no name");
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (error != std::errc() || end != port.data() + port.size()) refuse("the port is no number up to 65535");
  parsed.host = host;
  return parsed;
}

}  // namespace dflow::net::detail
