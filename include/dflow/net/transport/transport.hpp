#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/completion.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::net {

/// A connection: bytes both ways, each way in order, until one side closes it. The stream does not check the bytes
/// that it reads: the frames do.
///
/// A completion never runs inside the call that takes it, and two completions of one stream never run at once.
/// Completions must be short and must not block. The memory passed to a call belongs to the stream until the call's
/// completion runs. If there is no memory to run a completion, the completion is dropped at once, and told so.
///
/// Thread safety: safe; at most one read and one write at a time.
/// Errors: by completion: Unavailable when either side has closed or lost the connection; the message is the reason
/// alone, without the peer. Unauthenticated from the first read, if the other side does not accept this side's
/// identity. FailedPrecondition for a second read or write while the first waits.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Closes the stream. Completions that are due still run.
  virtual ~Stream();

  /// Waits for at least one byte, and reads the available bytes: `count`, at most the size of `into`, which is not 0.
  virtual void read_some(std::span<std::byte> into, std::size_t& count, Completion done) = 0;
  /// Writes all parts, one after the other. Completion does not mean that the peer has read them.
  virtual void write(std::vector<std::span<const std::byte>> parts, Completion done) = 0;
  /// Writes the bytes that go at once, from the first part on, and returns their number. The number is 0 while a
  /// write is under way, for a stream that has ended, and always for a stream that cannot do this. `write` takes the
  /// rest.
  virtual std::size_t try_write(std::span<const std::span<const std::byte>> /*parts*/) noexcept { return 0; }
  /// Ends reads and writes under way, on both sides. The peer may still read bytes that were written before.
  virtual void close() noexcept = 0;

  /// The address of the other side, for messages.
  virtual std::string peer() const = 0;
  /// Whether the system says that the process at the other end runs for another user than this process. False if the
  /// transport cannot tell.
  virtual bool is_of_other_user() const noexcept { return false; }
};

/// Accepts incoming connections.
///
/// Thread safety: safe; at most one accept at a time.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// Closes the listener.
  virtual ~Listener();

  /// Waits for the next connection and puts it into `stream`. Errors: by completion: Cancelled when the listener is
  /// closed.
  virtual void accept(std::unique_ptr<Stream>& stream, Completion done) = 0;
  /// Closes the listener, and the connections that nobody has accepted.
  virtual void close() noexcept = 0;

  /// The address that others connect to.
  virtual std::string address() const = 0;
};

/// Connects processes with one another. Each transport defines the form of its addresses.
///
/// Thread safety: safe. Streams and listeners may outlive it.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport();

  /// Errors: InvalidArgument for text that is no address, AlreadyExists for an address that is taken, Unavailable for
  /// an address that cannot be had.
  virtual std::unique_ptr<Listener> listen(const std::string& address) = 0;
  /// Connects; `stream` gets the connection. Errors: by completion: Unavailable if nobody listens, or too many
  /// connections wait to be accepted; DeadlineExceeded if connecting takes longer than the deadline; InvalidArgument.
  virtual void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
                       Completion done) = 0;

  /// Whether a stranger may be at the other end of a connection at this address, and `Stream::is_of_other_user` does
  /// not tell. Users of the same machine are strangers too. Errors: InvalidArgument for text that is no address.
  virtual bool is_exposed(const std::string& /*address*/) const { return false; }
  /// Errors: the errors of `connect` that do not depend on the other side: InvalidArgument for text that nobody can
  /// listen at.
  virtual void check_can_connect(const std::string& /*address*/) const {}
};

}  // namespace dflow::net
