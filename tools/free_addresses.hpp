// Addresses of this machine for tasks that are not started yet.
#pragma once

#include <dflow/base/str_cat.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace dflow::launch {

/// One behind the last port that the system never gives out by itself; 0 if the system does not say. If a port is free
/// only until its task starts, a port below this one stays free. Other processes that connect, or listen at port 0, get
/// other ports.
inline int end_of_kept_ports() {
  int first = 0, last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  return first;
}

/// `count` loopback addresses that were free just now: all are held at once, so that no two are the same. Throws
/// std::system_error.
inline std::vector<std::string> free_addresses(std::size_t count) {
  constexpr int first = 10000, few = 1000, tries = 200;  // below the first are ports that services are known by
  const int end = end_of_kept_ports();
  std::random_device random;
  std::uniform_int_distribution<int> kept(first, std::max(first, end - 1));
  std::vector<std::string> addresses;
  std::vector<int> sockets;
  const auto close_all = [&] {
    for (const int socket : sockets) ::close(socket);
  };
  for (int tried = 0; addresses.size() < count; ++tried) {
    const bool is_kept = end - first >= few && tried < tries;
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(is_kept ? kept(random) : 0));
    socklen_t size = sizeof address;
    auto* const general = reinterpret_cast<sockaddr*>(&address);
    if (socket < 0 || ::bind(socket, general, size) < 0 || ::getsockname(socket, general, &size) < 0) {
      const int error = errno;
      if (socket >= 0) ::close(socket);
      if (socket >= 0 && is_kept) continue;
      close_all();
      throw std::system_error(error, std::generic_category(), "no free port");
    }
    sockets.push_back(socket);
    addresses.push_back(str_cat("127.0.0.1:", ntohs(address.sin_port)));
    tried = 0;
  }
  close_all();
  return addresses;
}

}  // namespace dflow::launch
