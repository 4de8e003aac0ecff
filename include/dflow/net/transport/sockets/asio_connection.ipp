// One connection of AsioTransport. Included by asio_transport.ipp.
#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_loop.ipp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/post.hpp>

namespace dflow::net::detail {

/// Flags of a write that neither waits nor raises SIGPIPE. macOS has an option of the socket instead of the second flag
/// (`set_up_socket`).
#if defined(MSG_NOSIGNAL)
inline constexpr int try_write_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
#else
inline constexpr int try_write_flags = MSG_DONTWAIT;
#endif

using AsioSocket = asio::generic::stream_protocol::socket;

/// Whether a TLS peer has said that it does not accept this side's certificate. Only TLS uses it.
inline bool refuses_certificate(const asio::error_code& error) noexcept;

/// The parts of one system call, which lie elsewhere.
struct AsioGather {
  using value_type = asio::const_buffer;
  using const_iterator = const asio::const_buffer*;

  const_iterator first = nullptr, last = nullptr;

  const_iterator begin() const { return first; }
  const_iterator end() const { return last; }
};

/// The state of a stream, which lives until its last operation has ended. `Socket` is an AsioSocket, or a TLS stream
/// over one, which only the thread of its loop may touch.
template <class Socket>
class AsioConnection : public std::enable_shared_from_this<AsioConnection<Socket>> {
 public:
  static constexpr bool is_plain = std::is_same_v<Socket, AsioSocket>;

  template <class... Args>
  AsioConnection(std::shared_ptr<AsioLoop> loop, std::string peer, Args&&... args)
      : loop_(std::move(loop)), peer_(std::move(peer)), socket_(std::forward<Args>(args)...) {}

  Socket& socket() noexcept { return socket_; }
  AsioLoop& loop() noexcept { return *loop_; }
  const std::string& peer() const noexcept { return peer_; }

  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) {
    Status refused;
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) {
        refused = closed();
      } else if (reader_) {
        refused = Status::failed_precondition("the stream is being read already");
      } else {
        count = 0;
        into_ = into;
        count_ = &count;
        reader_ = std::move(done);
        done = nullptr;  // begin puts it back where it cannot
        begin([this] { start_reading(); }, reader_, done);
        if (reader_) return;
      }
    }
    refuse(std::move(done), std::move(refused));
  }

  void write(std::vector<std::span<const std::byte>> parts, Completion done) {
    Status refused;
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) {
        refused = closed();
      } else if (writer_) {
        refused = Status::failed_precondition("the stream is being written already");
      } else {
        parts_ = std::move(parts);
        part_ = 0;
        writer_ = std::move(done);
        done = nullptr;
        begin([this] { start_writing(); }, writer_, done);
        if (writer_) return;
      }
    }
    refuse(std::move(done), std::move(refused));
  }

  std::size_t try_write(std::span<const std::span<const std::byte>> parts) noexcept {
    if constexpr (!is_plain) return 0;  // the thread of the loop alone may use it
    const std::lock_guard lock(mutex_);
    if (is_closed_ || writer_) return 0;
    std::size_t written = 0;
    for (std::size_t part = 0; part < parts.size();) {
      std::array<iovec, max_gathered> gather;
      std::size_t gathered = 0, wanted = 0;
      for (; part < parts.size() && gathered < max_gathered; ++part) {
        gather[gathered++] = {const_cast<std::byte*>(parts[part].data()), parts[part].size()};
        wanted += parts[part].size();
      }
      msghdr message{};
      message.msg_iov = gather.data();
      message.msg_iovlen = gathered;
      const ssize_t count = ::sendmsg(socket_.lowest_layer().native_handle(), &message, try_write_flags);
      if (count <= 0) break;  // an error shows again in the write that follows
      written += static_cast<std::size_t>(count);
      if (static_cast<std::size_t>(count) < wanted) break;
    }
    return written;
  }

  void close() noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    ::shutdown(socket_.lowest_layer().native_handle(), SHUT_RDWR);
    if constexpr (is_plain) {
      release();
    } else {
      // The thread of the loop alone may do the rest. Without memory to tell it, the end of the last operation will.
      try {
        asio::post(loop_->context, [self = this->shared_from_this()] {
          const std::lock_guard relock(self->mutex_);
          self->release();
        });
      } catch (...) {
      }
    }
  }

 private:
  static constexpr std::size_t max_gathered = 64;  // parts that Asio hands to one system call

  static Status closed() { return Status::unavailable("the stream is closed"); }
  Status lost(const asio::error_code& error) const {
    if (is_closed_ || error == asio::error::operation_aborted) return closed();
    return Status::unavailable(error == asio::error::eof ? "the other side has closed it" : error.message());
  }
  /// With TLS 1.3 this side has made its handshake when the other side looks at its certificate.
  Status lost_in_read(const asio::error_code& error) const {
    if constexpr (!is_plain) {
      if (!has_read_ && !is_closed_ && refuses_certificate(error)) {
        return Status::unauthenticated(str_cat("the other side refuses this side's certificate: ", error.message()));
      }
    }
    return lost(error);
  }

  void refuse(Completion done, Status status) noexcept {
    if (!status.ok()) post_completion(*loop_, std::move(done), std::move(status));
  }

  /// Runs `start`, or leaves `done` to be dropped by the caller without the lock.
  template <class Start>
  void begin(const Start& start, Completion& waiting, Completion& done) noexcept {
    try {
      if (is_plain || loop_->is_current()) {
        start();
      } else {
        asio::post(loop_->context, [self = this->shared_from_this(), start, &waiting]() mutable {
          Completion dropped;
          const std::lock_guard lock(self->mutex_);
          self->begin_here(start, waiting, dropped);
        });
      }
    } catch (...) {
      done = std::move(waiting);
    }
  }
  template <class Start>
  void begin_here(const Start& start, Completion& waiting, Completion& dropped) noexcept {
    try {
      start();
    } catch (...) {
      dropped = std::move(waiting);
    }
  }

  void start_reading() {
    socket_.async_read_some(asio::mutable_buffer(into_.data(), into_.size()),
                            [self = this->shared_from_this()](const asio::error_code& error, std::size_t count) {
                              self->end_reading(error, count);
                            });
  }

  void end_reading(const asio::error_code& error, std::size_t count) noexcept {
    Completion done;
    Status status;
    {
      const std::lock_guard lock(mutex_);
      done = std::move(reader_);
      *count_ = count;
      has_read_ |= count != 0;
      if (error && count == 0) status = lost_in_read(error);
    }
    complete(done, std::move(status));
  }

  void start_writing() {
    std::size_t gathered = 0;
    for (std::size_t i = part_; i < parts_.size() && gathered < max_gathered; ++i) {
      if (!parts_[i].empty()) gather_[gathered++] = asio::const_buffer(parts_[i].data(), parts_[i].size());
    }
    if (gathered == 0) {
      asio::post(loop_->context, [self = this->shared_from_this()] { self->end_writing({}, 0); });
      return;
    }
    socket_.async_write_some(AsioGather{gather_.data(), gather_.data() + gathered},
                             [self = this->shared_from_this()](const asio::error_code& error, std::size_t count) {
                               self->end_writing(error, count);
                             });
  }

  void end_writing(const asio::error_code& error, std::size_t count) noexcept {
    Completion done;
    Status status;
    {
      const std::lock_guard lock(mutex_);
      for (; part_ < parts_.size() && count >= parts_[part_].size(); ++part_) count -= parts_[part_].size();
      if (part_ < parts_.size()) parts_[part_] = parts_[part_].subspan(count);
      const bool has_more = part_ < parts_.size();
      if (has_more && !error && !is_closed_) {
        begin_here([this] { start_writing(); }, writer_, done);
        if (writer_) return;
        status = Status::out_of_memory();
      } else {
        done = std::move(writer_);
        if (has_more) status = lost(error);
      }
      parts_.clear();
    }
    complete(done, std::move(status));
  }

  /// Reads and drops incoming bytes. If they stayed, the system would throw away bytes that the peer has not received
  /// yet.
  void release() noexcept {
    auto& lowest = socket_.lowest_layer();
    if (!lowest.is_open()) return;
    std::byte scratch[4096];
    for (int i = 0; i < 256; ++i) {
      if (::recv(lowest.native_handle(), scratch, sizeof(scratch), MSG_DONTWAIT) <= 0) break;
    }
    asio::error_code ignored;
    lowest.close(ignored);
  }

  const std::shared_ptr<AsioLoop> loop_;
  const std::string peer_;
  std::mutex mutex_;  ///< guards all that follows
  Socket socket_;
  bool is_closed_ = false;
  bool has_read_ = false;

  std::span<std::byte> into_;
  std::size_t* count_ = nullptr;
  Completion reader_;

  std::vector<std::span<const std::byte>> parts_;
  std::size_t part_ = 0;
  std::array<asio::const_buffer, max_gathered> gather_;
  Completion writer_;
};

template <class Socket>
class AsioStream final : public Stream {
 public:
  /// The caller makes sure that a user of the transport exists, or holds the mutex of `shared`.
  AsioStream(std::shared_ptr<AsioTransport::Shared> shared, std::shared_ptr<AsioConnection<Socket>> connection,
             bool is_of_other_user)
      : shared_(std::move(shared)),
        user_(shared_->users),
        connection_(std::move(connection)),
        is_of_other_user_(is_of_other_user) {}
  ~AsioStream() override { connection_->close(); }

  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) override {
    const auto connection = connection_;  // the completion may destroy the stream
    connection->read_some(into, count, std::move(done));
  }
  void write(std::vector<std::span<const std::byte>> parts, Completion done) override {
    const auto connection = connection_;
    connection->write(std::move(parts), std::move(done));
  }
  std::size_t try_write(std::span<const std::span<const std::byte>> parts) noexcept override {
    const auto connection = connection_;
    return connection->try_write(parts);
  }
  void close() noexcept override {
    const auto connection = connection_;
    connection->close();
  }
  std::string peer() const override { return connection_->peer(); }
  bool is_of_other_user() const noexcept override { return is_of_other_user_; }

 private:
  const std::shared_ptr<AsioTransport::Shared> shared_;
  const std::shared_ptr<const int> user_;
  const std::shared_ptr<AsioConnection<Socket>> connection_;
  const bool is_of_other_user_;
};

}  // namespace dflow::net::detail
