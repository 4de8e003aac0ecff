// A connect of AsioTransport under way. Included by asio_transport.ipp.
#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_address.hpp>
#include <dflow/net/transport/sockets/asio_connection.ipp>
#include <dflow/net/transport/sockets/asio_sockets.ipp>
#include <dflow/net/transport/sockets/asio_tls.ipp>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>

namespace dflow::net::detail {

/// All but `start` and `cancel` runs on the thread of its loop.
class AsioConnecting final : public AsioEndable, public std::enable_shared_from_this<AsioConnecting> {
 public:
  AsioConnecting(std::shared_ptr<AsioTransport::Shared> shared, AsioAddress address, Clock::time_point deadline,
                 std::unique_ptr<Stream>& stream, Completion done)
      : shared_(std::move(shared)),
        loop_(shared_->next_loop()),
        address_(std::move(address)),
        peer_(address_.text()),
        deadline_(deadline),
        stream_(stream),
        done_(std::move(done)),
        resolver_(loop_->context) {}

  void start() {
    asio::post(loop_->context, [self = shared_from_this()] { self->guarded([&] { self->run(); }); });
  }
  void cancel() noexcept override {
    try {
      end_later(cancelled_connect());
    } catch (...) {
      end_later(Status::out_of_memory());
    }
  }

 private:
  Status cancelled_connect() const {
    return Status::cancelled(str_cat("cannot connect to '", peer_, "': the transport is destroyed"));
  }
  void end_later(Status status) noexcept {
    try {
      asio::post(loop_->context,
                 [self = shared_from_this(), status = std::move(status)]() mutable { self->end(std::move(status)); });
    } catch (...) {
    }
  }
  template <class F>
  void guarded(const F& f) noexcept {
    if (has_ended_) return;
    try {
      f();
    } catch (...) {
      end(status_of_current_exception());
    }
  }
  Status late() const { return failed(Status::deadline_exceeded("the deadline has passed")); }
  Status failed(const Status& status) const { return status.with_prefix(str_cat("cannot connect to '", peer_, "': ")); }

  void run() {
    if (deadline_ != Clock::never) {
      Clock& clock = *shared_->options.clock;
      const auto on_time = [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        try {
          self->end_later(self->late());
        } catch (...) {
          self->end_later(Status::out_of_memory());
        }
      };
      if (clock.now() >= deadline_) return end(late());
      timer_ = clock.schedule_at(deadline_, on_time);
    }
    if (address_.scheme == AsioAddress::Scheme::unix_socket) {
      endpoints_.push_back(unix_endpoint(address_));
      return try_next();
    }
    asio::error_code no_number;
    const asio::ip::address number = asio::ip::make_address(address_.host, no_number);
    if (!no_number) {
      add_endpoint({number, address_.port});
      return try_next();
    }
    using Resolver = asio::ip::tcp::resolver;
    resolver_.async_resolve(
        address_.host, std::to_string(address_.port), Resolver::numeric_service,
        [self = shared_from_this()](const asio::error_code& error, const Resolver::results_type& found) {
          self->guarded([&] {
            if (error) return self->end(self->failed(Status::unavailable(error.message())));
            for (const auto& entry : found) self->add_endpoint(entry.endpoint());
            self->try_next();
          });
        });
  }

  /// A listener on this machine is asked at its Unix socket first.
  void add_endpoint(const asio::ip::tcp::endpoint& endpoint) {
    if (shared_->options.uses_local_sockets && address_.scheme == AsioAddress::Scheme::tcp) {
      if (const auto local = local_endpoint(endpoint)) endpoints_.push_back(*local);
    }
    endpoints_.push_back(endpoint);
  }

  void try_next() {
    while (next_ < endpoints_.size()) {
      const AsioEndpoint& endpoint = endpoints_[next_++];
      const int family = endpoint.protocol().family();
      OwnedFd fd = open_socket(family);
      const int handle = fd.get();
      if (handle < 0) {
        error_ = errno;
        continue;
      }
      set_options(handle, family, shared_->options);
      const bool is_done = ::connect(handle, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
      if (!is_done && errno != EINPROGRESS) {
        error_ = errno;
        continue;
      }
      const bool is_shortcut = family == AF_UNIX && address_.scheme == AsioAddress::Scheme::tcp;
      if (is_shortcut && !is_of_same_user(handle)) continue;
      socket_.emplace(adopt(*loop_, std::move(fd), family));
      if (is_done) return go_on();
      socket_->async_wait(AsioSocket::wait_write, [self = shared_from_this()](const asio::error_code& error) {
        self->guarded([&] {
          int failure = error ? error.value() : 0;
          socklen_t size = sizeof(failure);
          if (!error) ::getsockopt(self->socket_->native_handle(), SOL_SOCKET, SO_ERROR, &failure, &size);
          if (failure == 0 && !self->is_own_peer()) return self->go_on();
          self->error_ = failure == 0 ? ECONNREFUSED : failure;
          self->socket_.reset();
          self->try_next();
        });
      });
      return;
    }
    const bool is_full = address_.scheme == AsioAddress::Scheme::unix_socket && error_ == EAGAIN;
    end(failed(Status::unavailable(is_full ? "too many connections wait to be accepted" : text_of_errno(error_))));
  }

  /// The system may connect a socket to itself, where it picks the port that is asked for.
  bool is_own_peer() {
    if (address_.scheme == AsioAddress::Scheme::unix_socket) return false;
    asio::error_code error;
    const AsioEndpoint here = socket_->local_endpoint(error), there = socket_->remote_endpoint(error);
    return !error && here == there;
  }

  void go_on() {
    if (address_.scheme != AsioAddress::Scheme::tls) {
      return succeed(std::make_shared<AsioConnection<AsioSocket>>(loop_, peer_, std::move(*socket_)));
    }
#if defined(DFLOW_HAS_OPENSSL)
    tls_ = std::make_shared<AsioTlsConnection>(loop_, peer_, std::move(*socket_), *shared_->tls);
    if (shared_->options.tls->verifies_peers) expect_host(tls_->socket(), address_.host);
    tls_->socket().async_handshake(asio::ssl::stream_base::client,
                                   [self = shared_from_this()](const asio::error_code& error) {
                                     self->guarded([&] {
                                       if (!error) return self->succeed(std::exchange(self->tls_, nullptr));
                                       const Status why = refused_by_tls(self->tls_->socket(), error);
                                       self->end(self->failed(why));
                                     });
                                   });
#endif
  }

  template <class Socket>
  void succeed(std::shared_ptr<AsioConnection<Socket>> connection) {
    const bool is_of_other = is_of_other_user(address_, connection->socket());
    {
      const std::lock_guard lock(shared_->mutex);
      if (!shared_->has_ended)
        stream_ = std::make_unique<AsioStream<Socket>>(shared_, std::move(connection), is_of_other);
    }
    end(connection == nullptr ? Status() : cancelled_connect());
  }

  void end(Status status) noexcept {
    if (std::exchange(has_ended_, true)) return;
    if (timer_ != TimerId{}) shared_->options.clock->cancel(timer_);
    asio::error_code ignored;
    resolver_.cancel();
    if (socket_) socket_->close(ignored);
#if defined(DFLOW_HAS_OPENSSL)
    if (tls_) tls_->close();
#endif
    Completion done = std::move(done_);
    complete(done, std::move(status));
  }

  const std::shared_ptr<AsioTransport::Shared> shared_;
  const std::shared_ptr<AsioLoop> loop_;
  const AsioAddress address_;
  const std::string peer_;
  const Clock::time_point deadline_;
  std::unique_ptr<Stream>& stream_;
  Completion done_;
  bool has_ended_ = false;
  TimerId timer_{};

  asio::ip::tcp::resolver resolver_;
  std::vector<AsioEndpoint> endpoints_;
  std::size_t next_ = 0;
  int error_ = ECONNREFUSED;  ///< of the endpoint tried last
  std::optional<AsioSocket> socket_;
#if defined(DFLOW_HAS_OPENSSL)
  std::shared_ptr<AsioTlsConnection> tls_;
#endif
};

}  // namespace dflow::net::detail
