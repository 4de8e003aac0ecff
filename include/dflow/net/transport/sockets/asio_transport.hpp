#pragma once

/// Public: the transport of a cluster over TCP, TLS and Unix sockets.

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/net/transport/transport.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dflow::net {

/// The identity of this process in TLS, and the certificates that it trusts: files in PEM. TLS 1.2 at least; keys and
/// signatures of 112 bits at least, so no RSA under 2048 bits and no SHA-1. Revocation is not looked up, so
/// certificates should be short-lived.
struct TlsOptions {
  /// This process's certificate, followed by the certificates that lead to a trusted one. Listening needs it.
  std::string certificate_chain_file = {};
  std::string private_key_file = {};
  /// The certificates that verify all peers. Nothing else is trusted.
  std::string ca_file = {};
  /// Both sides show a certificate, and the connecting side checks that the peer's certificate names the requested
  /// host. Without this option, anybody may connect, and anybody may answer.
  bool verifies_peers = true;
};

struct AsioTransportOptions {
  /// Measures deadlines; null: the machine's clock.
  std::shared_ptr<Clock> clock = nullptr;
  /// Threads for reading, writing and completions; a connection stays with one of them.
  int threads = 1;
  /// Sends written bytes at once, rather than waiting for more bytes to send with them.
  bool no_delay = true;
  /// On Linux, a listener at a TCP address can also be reached by a Unix socket with that address's name. A client on
  /// the same machine, or in the same network namespace, uses the Unix socket if it belongs to the same user: it
  /// costs less.
  bool uses_local_sockets = true;
  /// A thread without work lets the machine's other threads run once before it waits, and then handles all their
  /// messages at once. If many tasks with little to compute share few cores, this takes a fourth less of the
  /// processors' time: most of a message's cost is to wake its receiver. If other threads compute, each message may
  /// wait for their turns, of some milliseconds.
  bool lets_others_run = false;
  /// Sizes of the system's buffers of a connection; 0 leaves them to the system. The send buffer of a Unix socket is
  /// then as large as the system allows, up to 1 MiB.
  int send_buffer_bytes = 0;
  int receive_buffer_bytes = 0;
  /// Most connections to a listener that wait to be accepted. For TLS, also the most handshakes under way: one more
  /// handshake ends the oldest.
  int max_waiting = 128;
  /// How long the other side of a TLS connection may take for its handshake with a listener.
  Duration handshake_timeout = std::chrono::seconds(10);
  /// Without these options, a tls address is FailedPrecondition.
  std::optional<TlsOptions> tls = std::nullopt;
  /// Gets a line for each peer that a TLS listener has refused, one at a time, from a thread of its own. It may block.
  /// It is not called after the transport's destructor.
  std::function<void(std::string_view)> log = nullptr;
};

/// Connections between processes, through the system's sockets, with threads of its own. An address is one of
///   "tcp://host:port" or "host:port"   an IPv6 address in brackets; listening at port 0 finds a free one
///   "unix:///path" or "unix://@name"   a file, or on Linux a name without one
///   "tls://host:port"                  where the library was built with OpenSSL
///
/// `listen` replaces a socket file that an earlier listener has left without closing it; closing removes the file. If
/// two processes replace one file at the same time, both may believe that they have it. `listen` waits while the
/// system looks up a host name. A listener refuses a TLS peer with a wrong identity before it accepts the connection.
/// The connecting side may learn of a refusal only from its first read.
///
/// The threads end when the transport, its streams and its listeners are all gone. If the transport goes last, and
/// not in a completion, its destructor waits for completions under way. The destructor ends connects under way with
/// Cancelled.
///
/// Thread safety: safe.
/// Errors: as of `Transport`, and Unimplemented for TLS if the library was built without it. `connect` completes with
/// Unauthenticated for a peer with a wrong identity. If no file descriptors are left, `accept` completes with
/// ResourceExhausted after a pause; the next `accept` goes on.
class AsioTransport final : public Transport {
 public:
  /// Errors: InvalidArgument for invalid options, and for a TLS file that cannot be used, naming it.
  /// ResourceExhausted if no thread can be started. Unimplemented for TLS if the library was built without it.
  explicit AsioTransport(const AsioTransportOptions& options = {});
  ~AsioTransport() override;

  /// Whether the library was built with OpenSSL.
  static bool has_tls() noexcept;

  std::unique_ptr<Listener> listen(const std::string& address) override;
  void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
               Completion done) override;
  /// True for TCP, and for TLS that does not verify peers. At a Unix socket the system names the user of the other
  /// side.
  bool is_exposed(const std::string& address) const override;
  void check_can_connect(const std::string& address) const override;

  struct Shared;

 private:
  struct Threads;

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Threads> threads_;
};

}  // namespace dflow::net
