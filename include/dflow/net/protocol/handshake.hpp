#pragma once

#include <dflow/base/sha256.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/identity.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dflow::net {

/// The side of a connection. Each side proves for its own role that it knows the secret, so that no proof can be sent
/// back to its maker.
enum class Role : std::uint8_t { connector = 1, acceptor = 2 };

/// The purpose of a connection between two tasks.
enum class Channel : std::uint8_t {
  control = 1,  ///< small and urgent messages
  data = 2,     ///< large tensors
};

/// The first frame of either side.
struct Hello {
  Role role = Role::connector;
  Channel channel = Channel::control;  ///< as the connector has it
  TaskIdentity self;
  std::string wanted;              ///< the task that the connector wants to reach; empty: any task
  std::uint64_t window_bytes = 0;  ///< of chunks that may be on their way to this side
  /// Of the names of the cluster's tasks, from a connector that is one of them; 0: the sender says nothing of them.
  std::uint64_t tasks_fingerprint = 0;
  std::array<std::byte, 32> nonce{};

  std::string to_bytes() const;
  /// Errors: DataLoss and OutOfRange if the bytes are no hello.
  static Hello from_bytes(std::string_view bytes);
};

/// The first exchange of both sides. They tell each other their identities, and prove over all sent bytes that they
/// know the cluster's secret. The proof is HMAC-SHA-256 over the maker's role, the connector's hello and the
/// acceptor's.
///
/// Thread safety: one thread at a time.
class Handshake {
 public:
  struct Options {
    Role role = Role::connector;
    Channel channel = Channel::control;
    TaskIdentity self;
    std::string secret;
    bool refuses_peer = false;  ///< because the other side's process runs for another user
    std::string wanted;         ///< of a connector
    std::uint64_t window_bytes = 0;
    std::uint64_t tasks_fingerprint = 0;  ///< of a connector
    std::function<std::uint64_t()> random;
  };

  explicit Handshake(const Options& options);

  const std::string& hello() const noexcept { return own_; }
  /// The proof to send. Errors: InvalidArgument, FailedPrecondition, Unauthenticated and DataLoss say why a peer with
  /// that hello is refused.
  Sha256Digest take_hello(std::string_view bytes);
  /// Errors: Unauthenticated unless it is the peer's proof. Precondition: its hello was taken.
  void take_proof(std::string_view bytes) const;
  /// Why the peer says goodbye, in words of this side where it has been given no secret and the peer has one.
  Status explain(const Status& refused) const;
  /// Precondition: the peer's hello was taken.
  const Hello& peer() const noexcept { return peer_; }

 private:
  Sha256Digest proof_of(Role role) const;

  std::string secret_;
  bool refuses_peer_;
  Hello self_;
  Hello peer_;
  std::string own_;
  std::string theirs_;
};

}  // namespace dflow::net
