#pragma once

/// Public: the transport of a cluster over sockets: TCP, TLS and Unix sockets.

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

/// Who this process is to others, and whom it believes: files in PEM. TLS 1.2 at least; keys and signatures of 112 bits
/// at least, so no RSA under 2048 bits and no SHA-1. Revocation is not looked up: certificates are to be short-lived.
struct TlsOptions {
  /// Its certificate, followed by those that lead to a trusted one. Listening needs it.
  std::string certificate_chain_file = {};
  std::string private_key_file = {};
  /// The certificates that all others' are checked by. Nothing else is trusted.
  std::string ca_file = {};
  /// Both sides show a certificate, and one that connects finds in it the host that it has asked for. Without this
  /// anybody may connect, and anybody may answer.
  bool verifies_peers = true;
};

struct AsioTransportOptions {
  /// Measures deadlines; the machine's if null.
  std::shared_ptr<Clock> clock = nullptr;
  /// Threads for reading, writing and completions; a connection stays with one of them.
  int threads = 1;
  /// Sends what is written at once, rather than waiting for more to send with it.
  bool no_delay = true;
  /// On Linux, a listener at a TCP address can also be reached by a Unix socket of that address's name, and who
  /// connects to it from the same machine, or network namespace, does so, if it belongs to the same user: it costs
  /// less.
  bool uses_local_sockets = true;
  /// A thread that has nothing to do lets the machine's other threads run once before it waits, and then handles at
  /// once all that they have sent. Where many tasks with little to compute share few cores that takes a fourth less of
  /// the processors' time, for most of what a message alone costs is to wake its receiver. Where others compute, each
  /// message may wait for their turns, of some milliseconds.
  bool lets_others_run = false;
  /// Of the system's buffers of a connection; 0 leaves them to the system, but that of sending by a Unix socket, which
  /// then is as large as the system allows up to 1 MiB.
  int send_buffer_bytes = 0;
  int receive_buffer_bytes = 0;
  /// Connections to a listener that nobody has accepted yet; and of TLS those that have not shown yet who they are: one
  /// more ends the oldest of these.
  int max_waiting = 128;
  /// How long the other side of a TLS connection may take to show who it is to a listener.
  Duration handshake_timeout = std::chrono::seconds(10);
  /// Without it a tls address is FailedPrecondition.
  std::optional<TlsOptions> tls = std::nullopt;
  /// Gets a line for each that a TLS listener has turned away, from a thread of the transport.
  std::function<void(std::string_view)> log = nullptr;
};

/// Connections between processes, through the system's sockets, with threads of its own. An address is one of
///   "tcp://host:port" or "host:port"   an IPv6 address in brackets; listening at port 0 finds a free one
///   "unix:///path" or "unix://@name"   a file, or on Linux a name without one
///   "tls://host:port"                  where the library was built with OpenSSL
///
/// A file that a listener has left without closing it is replaced; closing removes the file. Two processes that replace
/// one at the same time may both believe that they have it. `listen` waits while the system looks up the name of a
/// host. A TLS peer that is not who it should be is refused before it is accepted; one that connects may learn this by
/// its first read only.
///
/// The threads end with the last of the transport, its streams and its listeners. Where that is the transport, and not
/// in a completion, its destructor waits for completions under way; it ends connects under way with Cancelled.
///
/// Thread safety: safe.
/// Errors: besides those of transports: Unimplemented for TLS where the library has none, and Unauthenticated by the
/// completion of `connect` for a peer that is not who it should be; ResourceExhausted by the completion of `accept`,
/// after a pause, where there are no file descriptors left: the next `accept` goes on.
class AsioTransport final : public Transport {
 public:
  /// Errors: InvalidArgument for options that make no sense, and for a file of TLS that cannot be used, naming it;
  /// ResourceExhausted where no thread can be started; Unimplemented for TLS where the library has none.
  explicit AsioTransport(const AsioTransportOptions& options = {});
  ~AsioTransport() override;

  /// Whether the library was built with OpenSSL.
  static bool has_tls() noexcept;

  std::unique_ptr<Listener> listen(const std::string& address) override;
  void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
               Completion done) override;
  /// TCP at an address that is not loopback's, and TLS that does not verify peers.
  bool is_exposed(const std::string& address) const override;

  struct Shared;

 private:
  struct Threads;

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Threads> threads_;
};

}  // namespace dflow::net
