// The system's sockets, as AsioTransport opens them. Included by asio_transport.ipp.
#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_address.hpp>
#include <dflow/net/transport/sockets/asio_connection.ipp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>

namespace dflow::net::detail {

using AsioEndpoint = asio::generic::stream_protocol::endpoint;

/// A file descriptor, closed at the end.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) noexcept : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&&) = delete;
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

inline std::string text_of_errno(int error) { return std::generic_category().message(error); }

#if defined(SOCK_NONBLOCK) && defined(SOCK_CLOEXEC)

inline OwnedFd open_socket(int family, int type = SOCK_STREAM) noexcept {
  return OwnedFd(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// A connection that waits at the listener, or none; sets errno, and `from` to the peer's address.
inline OwnedFd accept_from(int listener, AsioEndpoint& from, socklen_t& size) noexcept {
  return OwnedFd(::accept4(listener, from.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

#else  // macOS

inline OwnedFd set_up_socket(OwnedFd fd) noexcept {
  if (fd.get() < 0) return fd;
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
#if defined(SO_NOSIGPIPE)
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  return fd;
}

inline OwnedFd open_socket(int family, int type = SOCK_STREAM) noexcept {
  return set_up_socket(OwnedFd(::socket(family, type, 0)));
}

inline OwnedFd accept_from(int listener, AsioEndpoint& from, socklen_t& size) noexcept {
  return set_up_socket(OwnedFd(::accept(listener, from.data(), &size)));
}

#endif

/// Errors: system_error; the descriptor is closed.
inline AsioSocket adopt(AsioLoop& loop, OwnedFd fd, int family) {
  AsioSocket socket(loop.context);
  socket.assign(asio::generic::stream_protocol(family, 0), fd.get());
  static_cast<void>(fd.release());
  return socket;
}

/// A socket that refuses an option works without it.
inline void set_options(int fd, int family, const AsioTransportOptions& options) noexcept {
  const auto set = [&](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof(value)); };
  // Unix sockets do not grow theirs by themselves: a chunk should fit, where the system allows it.
  constexpr int unix_send_buffer_bytes = 1 << 20;
  const int send_buffer_bytes = options.send_buffer_bytes > 0 ? options.send_buffer_bytes
                                : family == AF_UNIX           ? unix_send_buffer_bytes
                                                              : 0;
  if (send_buffer_bytes > 0) set(SOL_SOCKET, SO_SNDBUF, send_buffer_bytes);
  if (options.receive_buffer_bytes > 0) set(SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
  if (options.no_delay && family != AF_UNIX) set(IPPROTO_TCP, TCP_NODELAY, 1);
}

inline AsioEndpoint unix_endpoint(const AsioAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.host.data(), address.host.size());  // the length is checked by the parser
  const bool is_abstract = address.host.front() == '@';
  if (is_abstract) name.sun_path[0] = '\0';
  return AsioEndpoint(&name, offsetof(sockaddr_un, sun_path) + address.host.size() + (is_abstract ? 0 : 1));
}

/// The Unix socket by which a listener at a TCP endpoint can be reached on its machine, or none. Its name is in no file
/// system: it goes with its owner.
inline std::optional<AsioEndpoint> local_endpoint(asio::ip::tcp::endpoint tcp) {
#if defined(__linux__)
  if (tcp.address().is_unspecified()) {
    tcp.address(tcp.address().is_v4() ? asio::ip::address(asio::ip::address_v4::loopback())
                                      : asio::ip::address(asio::ip::address_v6::loopback()));
  }
  return unix_endpoint(
      {AsioAddress::Scheme::unix_socket, str_cat("@dflow ", tcp.address().to_string(), " ", tcp.port())});
#else
  static_cast<void>(tcp);
  return std::nullopt;
#endif
}

/// Whether the process at the other end of a Unix socket runs for the same user: any process may take a name.
inline bool is_of_same_user(int fd) noexcept {
#if defined(__linux__)
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
#else
  uid_t user;
  gid_t group;
  return ::getpeereid(fd, &user, &group) == 0 && user == ::geteuid();
#endif
}

/// Whether the process at the other end of a connection at a Unix address runs for another user. Other addresses do
/// not tell.
template <class Socket>
bool is_of_other_user(const AsioAddress& address, Socket& socket) noexcept {
  return address.scheme == AsioAddress::Scheme::unix_socket && !is_of_same_user(socket.lowest_layer().native_handle());
}

/// "tcp://1.2.3.4:5", or another text for a client that has no address.
inline std::string name_of_client(const AsioEndpoint& endpoint, const AsioAddress& listener) {
  const int family = endpoint.protocol().family();
  asio::ip::tcp::endpoint tcp;
  if ((family != AF_INET && family != AF_INET6) || endpoint.size() > tcp.capacity()) {
    return "a client of " + listener.text();
  }
  std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
  return AsioAddress{listener.scheme, tcp.address().to_string(), tcp.port()}.text();
}

/// The file of a Unix socket that listens, or none.
struct UnixFile {
  std::string path;
  dev_t device = 0;
  ino_t number = 0;

  /// Removes the file, if it is still the one that was bound.
  void remove() noexcept {
    struct stat found;
    if (path.empty() || ::stat(path.c_str(), &found) != 0) return;
    if (found.st_dev == device && found.st_ino == number) ::unlink(path.c_str());
    path.clear();
  }
};

/// Whether a socket's file lies there without its owner. A datagram socket probes the file: a file without an owner
/// refuses it. Any other file has the wrong type, and its owner does not see the probe.
inline bool is_stale(const std::string& path, const AsioEndpoint& endpoint) noexcept {
  struct stat found;
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const OwnedFd probe = open_socket(AF_UNIX, SOCK_DGRAM);
  if (probe.get() < 0) return false;
  return ::connect(probe.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 && errno == ECONNREFUSED;
}

/// Errors: AlreadyExists, Unavailable; `address` gets the port that was found.
inline OwnedFd open_listener(AsioAddress& address, const AsioEndpoint& endpoint, const AsioTransportOptions& options,
                             UnixFile& file) {
  const int family = endpoint.protocol().family();
  const auto fail = [&] {
    const int error = errno;
    const std::string text = str_cat("cannot listen at '", address.text(), "': ", text_of_errno(error));
    throw_error(error == EADDRINUSE ? Status::already_exists(text) : Status::unavailable(text));
  };
  OwnedFd fd = open_socket(family);
  if (fd.get() < 0) fail();
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  set_options(fd.get(), family, options);  // accepted sockets inherit them
  const auto bind = [&] { return ::bind(fd.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0; };
  const bool is_file = family == AF_UNIX && address.host.front() != '@';
  bool is_bound = bind();
  const int error = errno;  // the probe changes it
  if (!is_bound && error == EADDRINUSE && is_file && is_stale(address.host, endpoint)) {
    ::unlink(address.host.c_str());
    is_bound = bind();
  } else if (!is_bound) {
    errno = error;
  }
  if (!is_bound) fail();
  if (is_file) {
    struct stat found;
    if (::stat(address.host.c_str(), &found) == 0) file = {address.host, found.st_dev, found.st_ino};
  }
  if (::listen(fd.get(), options.max_waiting) != 0) {
    file.remove();
    fail();
  }
  if (family != AF_UNIX) {
    asio::ip::tcp::endpoint bound;
    auto size = static_cast<socklen_t>(bound.capacity());
    if (::getsockname(fd.get(), bound.data(), &size) != 0) fail();
    address.port = bound.port();
  }
  return fd;
}

/// The local way to a listener at a TCP address; none if a process of another user has its name, because nobody
/// believes that process. Errors: AlreadyExists if a process of the same user listens there: tasks of this machine
/// would reach that process.
inline OwnedFd open_local_listener(const AsioAddress& address, int tcp_listener, const AsioTransportOptions& options) {
  asio::ip::tcp::endpoint tcp;
  auto size = static_cast<socklen_t>(tcp.capacity());
  if (!options.uses_local_sockets || address.scheme != AsioAddress::Scheme::tcp) return OwnedFd();
  if (::getsockname(tcp_listener, tcp.data(), &size) != 0) return OwnedFd();
  tcp.resize(size);
  const std::optional<AsioEndpoint> endpoint = local_endpoint(tcp);
  if (!endpoint) return OwnedFd();
  OwnedFd fd = open_socket(AF_UNIX);
  if (fd.get() < 0) return fd;
  set_options(fd.get(), AF_UNIX, options);
  if (::bind(fd.get(), endpoint->data(), static_cast<socklen_t>(endpoint->size())) != 0) {
    const OwnedFd probe = open_socket(AF_UNIX);
    const bool is_heard =
        probe.get() >= 0 && ::connect(probe.get(), endpoint->data(), static_cast<socklen_t>(endpoint->size())) == 0;
    if (!is_heard || !is_of_same_user(probe.get())) return OwnedFd();
    throw_error(Status::already_exists(str_cat(
        "cannot listen at '", address.text(), "': another process listens at the Unix socket of that address's name")));
  }
  if (::listen(fd.get(), options.max_waiting) != 0) return OwnedFd();
  return fd;
}

}  // namespace dflow::net::detail
