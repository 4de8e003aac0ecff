#pragma once

#include <dflow/base/status.hpp>
#include <dflow/net/transport/memory_transport.hpp>
#include <dflow/net/transport/strand.hpp>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

/// A completion and its result, to be called when no lock is held any more.
struct DueCompletion {
  std::shared_ptr<Strand> strand;
  Completion done;
  Status status;

  void post() && noexcept {
    if (!done) return;
    try {
      strand->post([done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
    } catch (...) {  // dropped, and told so on the way
    }
  }
};

/// One way of a connection.
class MemoryPipe {
 public:
  /// One end: where its completions run, and the error that they get once the connection is closed.
  struct End {
    std::shared_ptr<Strand> strand;
    Status closed;
  };

  MemoryPipe(End writers, End readers, std::size_t buffer_bytes)
      : writers_(std::move(writers)), readers_(std::move(readers)), buffer_(buffer_bytes) {}

  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) {
    const auto begin = [&] {
      if (reader_) {
        return DueCompletion{readers_.strand, std::move(done),
                             Status::failed_precondition("the stream is being read already")};
      }
      count = 0;
      into_ = into;
      count_ = &count;
      reader_ = std::move(done);
      return DueCompletion();
    };
    change(begin);
  }

  void write(std::vector<std::span<const std::byte>> parts, Completion done) {
    const auto begin = [&] {
      if (writer_) {
        return DueCompletion{writers_.strand, std::move(done),
                             Status::failed_precondition("the stream is being written already")};
      }
      parts_ = std::move(parts);
      part_ = offset_ = 0;
      writer_ = std::move(done);
      return DueCompletion();
    };
    change(begin);
  }

  /// The reader has let go: nothing is delivered any more.
  void stop_reading() noexcept {
    change([&] {
      is_closed_ = true;
      size_ = 0;
      return DueCompletion();
    });
  }
  /// The writer has let go: bytes in the buffer may still be read.
  void stop_writing() noexcept {
    change([&] {
      is_closed_ = true;
      return DueCompletion();
    });
  }

 private:
  template <class Begin>
  void change(const Begin& begin) {
    DueCompletion refused, read, written;
    {
      const std::lock_guard lock(mutex_);
      refused = begin();
      move_bytes();
      if (reader_ && *count_ > 0) {
        read = {readers_.strand, std::exchange(reader_, nullptr), Status()};
      } else if (reader_ && is_closed_) {
        read = {readers_.strand, std::exchange(reader_, nullptr), readers_.closed};
      }
      if (writer_ && is_closed_) {
        written = {writers_.strand, std::exchange(writer_, nullptr), writers_.closed};
      } else if (writer_ && part_ == parts_.size()) {
        written = {writers_.strand, std::exchange(writer_, nullptr), Status()};
      }
    }
    std::move(refused).post();
    std::move(read).post();
    std::move(written).post();
  }

  /// From the buffer to the reader, from the writer to the reader, and from the writer to the buffer.
  void move_bytes() noexcept {
    while (reader_ && *count_ < into_.size() && size_ > 0) {
      const std::size_t n = std::min({into_.size() - *count_, size_, buffer_.size() - begin_});
      std::memcpy(into_.data() + *count_, buffer_.data() + begin_, n);
      *count_ += n;
      begin_ = (begin_ + n) % buffer_.size();
      size_ -= n;
    }
    if (!writer_ || is_closed_) return;
    for (; part_ < parts_.size(); ++part_, offset_ = 0) {
      while (offset_ < parts_[part_].size()) {
        const std::span<const std::byte> rest = parts_[part_].subspan(offset_);
        const std::size_t taken = deliver(rest);
        if (taken == 0) return;
        offset_ += taken;
      }
    }
  }

  std::size_t deliver(std::span<const std::byte> bytes) noexcept {
    if (reader_ && *count_ < into_.size()) {
      const std::size_t n = std::min(into_.size() - *count_, bytes.size());
      std::memcpy(into_.data() + *count_, bytes.data(), n);
      *count_ += n;
      return n;
    }
    const std::size_t end = (begin_ + size_) % buffer_.size();
    const std::size_t room = std::min(buffer_.size() - size_, buffer_.size() - end);
    const std::size_t n = std::min(room, bytes.size());
    if (n > 0) std::memcpy(buffer_.data() + end, bytes.data(), n);
    size_ += n;
    return n;
  }

  std::mutex mutex_;
  const End writers_, readers_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, size_ = 0;
  bool is_closed_ = false;

  std::span<std::byte> into_;
  std::size_t* count_ = nullptr;
  Completion reader_;

  std::vector<std::span<const std::byte>> parts_;
  std::size_t part_ = 0, offset_ = 0;
  Completion writer_;
};

/// One end of a connection.
class MemoryStream final : public Stream {
 public:
  MemoryStream(std::shared_ptr<MemoryPipe> in, std::shared_ptr<MemoryPipe> out, std::string peer)
      : in_(std::move(in)), out_(std::move(out)), peer_(std::move(peer)) {}
  ~MemoryStream() override { MemoryStream::close(); }

  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) override {
    in_->read_some(into, count, std::move(done));
  }
  void write(std::vector<std::span<const std::byte>> parts, Completion done) override {
    out_->write(std::move(parts), std::move(done));
  }
  void close() noexcept override {
    // A completion that this calls for may destroy the stream.
    const std::shared_ptr<MemoryPipe> in = in_, out = out_;
    in->stop_reading();
    out->stop_writing();
  }
  std::string peer() const override { return peer_; }

 private:
  std::shared_ptr<MemoryPipe> in_, out_;
  std::string peer_;
};

/// The queue at an address: connections that nobody has accepted, or a waiting accept.
class MemoryPort {
 public:
  MemoryPort(std::shared_ptr<ThreadPool> pool, std::size_t max_waiting)
      : strand_(std::make_shared<Strand>(std::move(pool))), max_waiting_(max_waiting) {}

  void accept(std::unique_ptr<Stream>& stream, Completion done) {
    DueCompletion due;
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) {
        due = {strand_, std::move(done), closed_};
      } else if (acceptor_) {
        due = {strand_, std::move(done), Status::failed_precondition("the listener is accepting already")};
      } else if (waiting_.empty()) {
        accepted_ = &stream;
        acceptor_ = std::move(done);
      } else {
        stream = std::move(waiting_.front());
        waiting_.pop_front();
        due = {strand_, std::move(done), Status()};
      }
    }
    std::move(due).post();
  }

  /// Unavailable if it is closed, or if too many wait already.
  Status offer(std::unique_ptr<Stream>& stream) {
    DueCompletion due;
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) return Status::unavailable("nobody listens there any more");
      if (waiting_.size() >= max_waiting_) return Status::unavailable("too many connections wait to be accepted");
      if (acceptor_) {
        *accepted_ = std::move(stream);
        due = {strand_, std::exchange(acceptor_, nullptr), Status()};
      } else {
        waiting_.push_back(std::move(stream));
      }
    }
    std::move(due).post();
    return {};
  }

  void close() noexcept {
    DueCompletion due;
    std::list<std::unique_ptr<Stream>> dropped;  // closed without the lock
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      dropped.swap(waiting_);
      due = {strand_, std::exchange(acceptor_, nullptr), closed_};
    }
    std::move(due).post();
  }

 private:
  const std::shared_ptr<Strand> strand_;
  const std::size_t max_waiting_;
  const Status closed_ = Status::cancelled("the listener is closed");
  std::mutex mutex_;
  std::list<std::unique_ptr<Stream>> waiting_;
  std::unique_ptr<Stream>* accepted_ = nullptr;
  Completion acceptor_;
  bool is_closed_ = false;
};

}  // namespace detail

struct MemoryTransport::Network {
  Network(std::shared_ptr<ThreadPool> its_pool, const MemoryTransportOptions& its_options)
      : pool(std::move(its_pool)), options(its_options) {}

  std::shared_ptr<detail::MemoryPort> port_at(const std::string& address) {
    const std::lock_guard lock(mutex);
    const auto found = ports.find(address);
    return found == ports.end() ? nullptr : found->second;
  }

  std::shared_ptr<ThreadPool> pool;
  MemoryTransportOptions options;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<detail::MemoryPort>> ports;
};

namespace detail {

class MemoryListener final : public Listener {
 public:
  MemoryListener(std::shared_ptr<MemoryTransport::Network> network, std::string address,
                 std::shared_ptr<MemoryPort> port)
      : network_(std::move(network)), address_(std::move(address)), port_(std::move(port)) {}
  ~MemoryListener() override { MemoryListener::close(); }

  void accept(std::unique_ptr<Stream>& stream, Completion done) override { port_->accept(stream, std::move(done)); }
  void close() noexcept override {
    {
      const std::lock_guard lock(network_->mutex);
      const auto found = network_->ports.find(address_);
      if (found != network_->ports.end() && found->second == port_) network_->ports.erase(found);
    }
    port_->close();
  }
  std::string address() const override { return address_; }

 private:
  std::shared_ptr<MemoryTransport::Network> network_;
  std::string address_;
  std::shared_ptr<MemoryPort> port_;
};

}  // namespace detail

MemoryTransport::MemoryTransport(std::shared_ptr<ThreadPool> pool, const MemoryTransportOptions& options)
    : network_(std::make_shared<Network>(std::move(pool), options)) {
  if (network_->pool == nullptr) throw_error(Status::invalid_argument("a transport needs a pool for its completions"));
  if (options.buffer_bytes == 0)
    throw_error(Status::invalid_argument("a connection needs a buffer of at least one byte"));
}
MemoryTransport::~MemoryTransport() = default;

std::unique_ptr<Listener> MemoryTransport::listen(const std::string& address) {
  if (address.empty()) throw_error(Status::invalid_argument("an address cannot be empty"));
  auto port = std::make_shared<detail::MemoryPort>(network_->pool, network_->options.max_waiting);
  auto listener = std::make_unique<detail::MemoryListener>(network_, address, port);
  const std::lock_guard lock(network_->mutex);
  if (!network_->ports.emplace(address, std::move(port)).second) {
    throw_error(Status::already_exists("somebody listens at '" + address + "' already"));
  }
  return listener;
}

void MemoryTransport::connect(const std::string& address, Clock::time_point, std::unique_ptr<Stream>& stream,
                              Completion done) {
  const std::string client = "a client of " + address;
  const Status closed = Status::unavailable("the stream is closed");
  const detail::MemoryPipe::End near{std::make_shared<Strand>(network_->pool), closed};
  const detail::MemoryPipe::End far{std::make_shared<Strand>(network_->pool), closed};
  const std::size_t bytes = network_->options.buffer_bytes;
  const auto there = std::make_shared<detail::MemoryPipe>(near, far, bytes);
  const auto back = std::make_shared<detail::MemoryPipe>(far, near, bytes);
  auto mine = std::make_unique<detail::MemoryStream>(back, there, address);
  std::unique_ptr<Stream> theirs = std::make_unique<detail::MemoryStream>(there, back, client);
  const std::shared_ptr<detail::MemoryPort> port = network_->port_at(address);
  Status status;
  if (address.empty()) {
    status = Status::invalid_argument("an address cannot be empty");
  } else if (port == nullptr) {
    status = Status::unavailable("nobody listens at '" + address + "'");
  } else {
    status = port->offer(theirs).with_prefix("cannot connect to '" + address + "': ");
    if (status.ok()) stream = std::move(mine);
  }
  detail::DueCompletion due{near.strand, std::move(done), std::move(status)};
  std::move(due).post();
}

}  // namespace dflow::net
