// Unix sockets of another user of this machine, for tests of who may connect.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dflow::testing {

/// Only root can become another user.
inline bool can_be_other_user() noexcept { return ::geteuid() == 0; }

/// A new socket. A process of the user "nobody" calls `act` with it, and the system remembers that user. The socket is
/// -1 if `act` returns false.
template <class Act>
int socket_of_other_user(std::string_view name, const Act& act) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool has_acted = ::setuid(65534) == 0 && act(fd, reinterpret_cast<const sockaddr*>(&address), size);
    ::_exit(has_acted ? 0 : 1);
  }
  int status = 1;
  if (child > 0 && ::waitpid(child, &status, 0) == child && status == 0) return fd;
  ::close(fd);
  return -1;
}

/// A socket that another user has connected to the address "unix://@name".
inline int connected_by_other_user(std::string_view name) {
  return socket_of_other_user(
      name, [](int fd, const sockaddr* address, socklen_t size) { return ::connect(fd, address, size) == 0; });
}

/// A socket that another user has listen at the address "unix://@name".
inline int listening_by_other_user(std::string_view name) {
  return socket_of_other_user(name, [](int fd, const sockaddr* address, socklen_t size) {
    return ::bind(fd, address, size) == 0 && ::listen(fd, 8) == 0;
  });
}

/// A name that no other test uses.
inline std::string socket_name(std::string_view what) {
  return "dflow-test-" + std::to_string(::getpid()) + "-" + std::string(what);
}

}  // namespace dflow::testing
