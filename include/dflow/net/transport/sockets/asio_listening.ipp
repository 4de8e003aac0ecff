// A listener of AsioTransport. Included by asio_transport.ipp.
#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_address.hpp>
#include <dflow/net/transport/sockets/asio_connection.ipp>
#include <dflow/net/transport/sockets/asio_sockets.ipp>
#include <dflow/net/transport/sockets/asio_tls.ipp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

namespace dflow::net::detail {

/// Takes connections from the system when a caller accepts one. Connections with TLS are taken earlier, and make
/// their handshakes side by side, so that a slow one holds up no other.
class AsioListening final : public std::enable_shared_from_this<AsioListening> {
 public:
  /// `local` is another socket by which the same can be reached, or none.
  AsioListening(std::shared_ptr<AsioTransport::Shared> shared, AsioAddress address, OwnedFd fd, UnixFile file,
                OwnedFd local)
      : shared_(std::move(shared)), loop_(shared_->next_loop()), address_(std::move(address)), file_(std::move(file)) {
    for (OwnedFd* const opened : {&fd, &local}) {
      if (opened->get() < 0) continue;
      doors_.emplace_back(loop_->context).socket.assign(opened->get());
      static_cast<void>(opened->release());
    }
  }

  const AsioAddress& address() const noexcept { return address_; }

  /// Errors: bad_alloc.
  void start() {
    const std::lock_guard lock(mutex_);
    wait();
  }

  void accept(std::unique_ptr<Stream>& stream, Completion done) noexcept {
    Status status;
    Completion dropped;  // without the lock
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) {
        status = closed();
      } else if (acceptor_) {
        status = Status::failed_precondition("the listener is accepting already");
      } else if (!ready_.empty()) {
        stream = std::move(ready_.front());
        ready_.pop_front();
      } else {
        accepted_ = &stream;
        acceptor_ = std::move(done);
        done = nullptr;
      }
      try {
        wait();
      } catch (...) {
        dropped = std::move(acceptor_);
      }
    }
    if (done) post_completion(*loop_, std::move(done), std::move(status));
  }

  void close() noexcept {
    Completion done;
    std::list<std::unique_ptr<Stream>> ready;  // closed without the lock
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_closed_, true)) return;
      file_.remove();
      asio::error_code ignored;
      for (Door& door : doors_) door.socket.close(ignored);
      done = std::move(acceptor_);
      ready.swap(ready_);
#if defined(DFLOW_HAS_OPENSSL)
      for (const auto& handshake : handshakes_) handshake->close();
#endif
    }
    if (done) post_completion(*loop_, std::move(done), closed());
  }

 private:
  /// A socket that listens.
  struct Door {
    explicit Door(asio::io_context& context) : socket(context) {}
    asio::posix::stream_descriptor socket;
    bool is_waiting = false;
  };

  static Status closed() { return Status::cancelled("the listener is closed"); }
  static constexpr Duration pause = std::chrono::milliseconds(50);

  bool is_tls() const noexcept { return address_.scheme == AsioAddress::Scheme::tls; }

  /// Whether one more connection is wanted.
  bool has_room() const noexcept {
    if (!is_tls()) return static_cast<bool>(acceptor_);
    return ready_.size() < static_cast<std::size_t>(shared_->options.max_waiting);
  }

  void wait() {
    if (is_closed_ || is_resting_ || !has_room()) return;
    for (Door& door : doors_) {
      if (door.is_waiting) continue;
      door.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                             [self = shared_from_this(), &door](const asio::error_code&) { self->take(door); });
      door.is_waiting = true;
    }
  }

  void take(Door& door) noexcept {
    Completion dropped;
    const std::lock_guard lock(mutex_);
    door.is_waiting = false;
    try {
      while (!is_closed_ && !is_resting_ && has_room()) {
        AsioEndpoint from;
        auto size = static_cast<socklen_t>(from.capacity());
        OwnedFd fd = accept_from(door.socket.native_handle(), from, size);
        if (fd.get() >= 0) {
          from.resize(size);
          arrive(std::move(fd), from);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          return rest(errno);
        } else {
          // Nobody is there, or nobody any more.
          return wait();
        }
      }
    } catch (...) {
      dropped = std::move(acceptor_);
    }
  }

  /// Waits a little before it reports that it cannot accept, so that a caller that accepts in a loop does not spin.
  void rest(int error) {
    Clock& clock = *shared_->options.clock;
    clock.schedule_after(pause, [weak = weak_from_this(), error] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      try {
        asio::post(self->loop_->context, [self, error] { self->go_on(error); });
      } catch (...) {  // the clock's thread may do it, too
        self->go_on(error);
      }
    });
    is_resting_ = true;
  }
  void go_on(int error) noexcept {
    Completion done;
    {
      const std::lock_guard lock(mutex_);
      is_resting_ = false;
      done = std::move(acceptor_);
      try {
        wait();
      } catch (...) {
      }
    }
    if (done) {
      complete(done,
               Status::resource_exhausted(str_cat("cannot accept at '", address_.text(), "': ", text_of_errno(error))));
    }
  }

  void arrive(OwnedFd fd, const AsioEndpoint& from) {
    const int family = from.protocol().family();
    set_options(fd.get(), family, shared_->options);
    const std::shared_ptr<AsioLoop>& loop = shared_->next_loop();
    AsioSocket socket = adopt(*loop, std::move(fd), family);
    std::string peer = name_of_client(from, address_);
    if (!is_tls()) {
      return deliver(std::make_shared<AsioConnection<AsioSocket>>(loop, std::move(peer), std::move(socket)));
    }
#if defined(DFLOW_HAS_OPENSSL)
    auto tls = std::make_shared<AsioTlsConnection>(loop, std::move(peer), std::move(socket), *shared_->tls);
    handshakes_.push_back(tls);
    if (handshakes_.size() > static_cast<std::size_t>(shared_->options.max_waiting)) {
      handshakes_.front()->close();
      handshakes_.pop_front();
    }
    try {
      const TimerId timer =
          shared_->options.clock->schedule_after(shared_->options.handshake_timeout, [weak = std::weak_ptr(tls)] {
            if (const auto late = weak.lock()) late->close();
          });
      asio::post(loop->context, [self = shared_from_this(), tls, timer] {
        tls->socket().async_handshake(asio::ssl::stream_base::server,
                                      [self, tls, timer](const asio::error_code& error) {
                                        self->shared_->options.clock->cancel(timer);
                                        self->end_handshake(tls, error);
                                      });
      });
    } catch (...) {
      handshakes_.pop_back();
      throw;
    }
#endif
  }

#if defined(DFLOW_HAS_OPENSSL)
  void end_handshake(const std::shared_ptr<AsioTlsConnection>& tls, const asio::error_code& error) noexcept {
    Completion dropped;
    if (error && shared_->log != nullptr) {
      try {
        shared_->log->add(
            str_cat("no connection with ", tls->peer(), ": ", refused_by_tls(tls->socket(), error).to_string()),
            tls->peer());
      } catch (...) {  // no memory to say it with
      }
    }
    const std::lock_guard lock(mutex_);
    handshakes_.remove(tls);
    try {
      if (!error && !is_closed_) deliver(tls);
      wait();
    } catch (...) {
      dropped = std::move(acceptor_);
    }
  }
#endif

  template <class Socket>
  void deliver(std::shared_ptr<AsioConnection<Socket>> connection) {
    const bool is_of_other = is_of_other_user(address_, connection->socket());
    std::unique_ptr<Stream> stream = std::make_unique<AsioStream<Socket>>(shared_, std::move(connection), is_of_other);
    if (!acceptor_) {
      ready_.push_back(std::move(stream));
      return;
    }
    *accepted_ = std::move(stream);
    post_completion(*loop_, std::move(acceptor_), Status());
  }

  const std::shared_ptr<AsioTransport::Shared> shared_;
  const std::shared_ptr<AsioLoop> loop_;
  const AsioAddress address_;
  std::mutex mutex_;  ///< guards all that follows
  UnixFile file_;
  std::list<Door> doors_;
  bool is_closed_ = false;
  bool is_resting_ = false;  ///< for want of descriptors or memory
  std::unique_ptr<Stream>* accepted_ = nullptr;
  Completion acceptor_;
  std::list<std::unique_ptr<Stream>> ready_;
#if defined(DFLOW_HAS_OPENSSL)
  std::list<std::shared_ptr<AsioTlsConnection>> handshakes_;
#endif
};

class AsioListener final : public Listener {
 public:
  AsioListener(const std::shared_ptr<AsioTransport::Shared>& shared, std::shared_ptr<AsioListening> listening)
      : user_(shared->users), listening_(std::move(listening)) {}
  ~AsioListener() override { listening_->close(); }

  void accept(std::unique_ptr<Stream>& stream, Completion done) override {
    const auto listening = listening_;  // the completion may destroy the listener
    listening->accept(stream, std::move(done));
  }
  void close() noexcept override {
    const auto listening = listening_;
    listening->close();
  }
  std::string address() const override { return listening_->address().text(); }

 private:
  const std::shared_ptr<const int> user_;
  const std::shared_ptr<AsioListening> listening_;
};

}  // namespace dflow::net::detail
