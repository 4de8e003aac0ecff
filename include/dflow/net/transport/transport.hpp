#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/completion.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow::net {

/// A connection: bytes both ways, each way in order, until one side closes it. What is read is not checked: that is the
/// business of frames.
///
/// Completions never run inside the call that takes them, nor two of one stream at once; they must be short and must
/// not block. Memory that a call was given is the stream's until its completion runs. Where there is no memory to run a
/// completion, it is dropped at once, and told so.
///
/// Thread safety: safe; at most one read and one write at a time.
/// Errors: by completion: Unavailable when either side has closed or lost the connection, naming the peer;
/// FailedPrecondition for a second read or write while the first waits.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Closes it. Completions that are due run all the same.
  virtual ~Stream();

  /// Waits for at least one byte, and reads what is there, up to the size of `into`, which is not 0: `count` bytes.
  virtual void read_some(std::span<std::byte> into, std::size_t& count, Completion done) = 0;
  /// Writes all parts, one after the other. That it is done does not say that the peer has read them.
  virtual void write(std::vector<std::span<const std::byte>> parts, Completion done) = 0;
  /// Writes what goes at once, from the first part on, and says how many bytes: 0 where a write is under way, for a
  /// stream that has ended, and always for one that cannot. The rest is for `write`.
  virtual std::size_t try_write(std::span<const std::span<const std::byte>> /*parts*/) noexcept { return 0; }
  /// Ends what is under way, on both sides. The peer may still read what was written before.
  virtual void close() noexcept = 0;

  /// The address of the other side, for messages.
  virtual std::string peer() const = 0;
};

/// Where connections come in.
///
/// Thread safety: safe; at most one accept at a time.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// Closes it.
  virtual ~Listener();

  /// Waits for the next connection, which `stream` gets. Errors: by completion: Cancelled when the listener is closed.
  virtual void accept(std::unique_ptr<Stream>& stream, Completion done) = 0;
  /// Connections that nobody has accepted are closed too.
  virtual void close() noexcept = 0;

  /// What others connect to.
  virtual std::string address() const = 0;
};

/// How processes reach each other. What an address looks like is the transport's business.
///
/// Thread safety: safe. Streams and listeners may outlive it.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport();

  /// Errors: InvalidArgument for what is no address, AlreadyExists for one that is taken, Unavailable for one that
  /// cannot be had.
  virtual std::unique_ptr<Listener> listen(const std::string& address) = 0;
  /// Connects; `stream` gets the connection. Errors: by completion: Unavailable where nobody listens, or too many wait
  /// to be accepted; DeadlineExceeded where it takes so long; InvalidArgument.
  virtual void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
                       Completion done) = 0;

  /// Whether strangers, of other machines, get to whoever listens there. Errors: InvalidArgument for what is no
  /// address.
  virtual bool is_exposed(const std::string& /*address*/) const { return false; }
};

}  // namespace dflow::net
