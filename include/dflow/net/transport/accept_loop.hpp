#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/net/transport/transport.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dflow::net {

/// Accepts one connection after the other, until it is closed. After a failure it waits, because the next accept is
/// likely to fail too.
///
/// Thread safety: safe.
class AcceptLoop : public std::enable_shared_from_this<AcceptLoop> {
 public:
  struct Options {
    std::shared_ptr<Clock> clock;
    std::function<void(std::string_view)> log;  ///< gets a line for each connection that could not be accepted
    std::string what = "a connection";          ///< that is accepted, for these lines
  };
  /// Gets each connection, on a thread of the transport, one at a time. An exception that it throws counts as a
  /// failure.
  using Admit = std::function<void(std::unique_ptr<Stream>)>;

  AcceptLoop(std::unique_ptr<Listener> listener, Options options, Admit admit);

  /// Called once.
  void start() noexcept { accept_next(); }
  /// Connections that are accepted already may still come.
  void close() noexcept { listener_->close(); }
  /// The address that others connect to.
  std::string address() const { return listener_->address(); }

 private:
  struct Accept;

  void accept_next() noexcept;
  void accept_later(const Status& why) noexcept;

  const std::unique_ptr<Listener> listener_;
  const Options options_;
  const Admit admit_;
};

}  // namespace dflow::net
