#pragma once

#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/connection_messages.ipp>
#include <dflow/net/protocol/messages.hpp>

#include <algorithm>
#include <utility>

namespace dflow::net {

// ---- beginning and end ----

std::shared_ptr<Connection> Connection::open(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options,
                                             std::shared_ptr<Handler> handler, Opened done) {
  auto connection =
      std::make_shared<Connection>(std::move(stream), role, std::move(options), std::move(handler), std::move(done));
  connection->start();
  return connection;
}

Connection::Connection(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options,
                       std::shared_ptr<Handler> handler, Opened done)
    : stream_(std::move(stream)),
      options_(std::move(options)),
      own_channel_(options_.channel),
      handler_(std::move(handler)),
      handshake_({.role = role,
                  .channel = options_.channel,
                  .self = options_.self,
                  .secret = options_.secret,
                  .refuses_peer = options_.secret.empty() && !options_.is_insecure && stream_->is_of_other_user(),
                  .wanted = options_.expected_peer,
                  .window_bytes = options_.window_bytes,
                  .tasks_fingerprint = options_.tasks_fingerprint,
                  .random = options_.random}),
      channel_(options_.channel),
      reader_(*this, detail::max_handshake_bytes, options_.window_bytes),
      window_left_(options_.window_bytes),
      opened_(std::move(done)),
      writer_(options_.chunk_bytes) {}

Connection::~Connection() = default;

std::string Connection::peer_name() const {
  return has_hello_.load(std::memory_order_acquire) ? handshake_.peer().self.task : stream_->peer();
}

void Connection::log_of_peer(std::string_view line) const {
  if (options_.log_of_peer) return options_.log_of_peer(line, stream_->peer());
  if (options_.log) options_.log(line);
}

void Connection::start() {
  {
    const std::lock_guard lock(mutex_);
    timer_ = options_.clock->schedule_after(options_.handshake_timeout, [weak = weak_from_this()] {
      const std::shared_ptr<Connection> self = weak.lock();
      if (self == nullptr || self->is_open()) return;
      self->guarded(
          [&] { self->fail(Status::deadline_exceeded("the other side has not introduced itself in time"), false); });
    });
    writer_.add({.type = FrameType::hello}, handshake_.hello());
    flush();
  }
  read_next();
}

/// If there is no memory for an action, the connection ends: otherwise the peer would wait for a message that was
/// never sent.
template <class F>
void Connection::guarded(const F& f) noexcept {
  try {
    f();
  } catch (...) {
    fail(status_of_current_exception(), false);
  }
}

/// The first status counts. Waiting callers are told outside of the lock.
void Connection::fail(Status status, bool tell_peer) noexcept {
  const std::shared_ptr<Connection> self = shared_from_this();
  detail::tell([&] { status = status.with_task(peer_name()); });
  std::unordered_map<std::uint64_t, std::shared_ptr<Pending>> calls;
  std::map<std::uint64_t, Asked> requests;
  Opened opened;
  bool was_open = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    if (std::exchange(is_answering_, false)) flush();  // earlier frames go first
    closed_ = status;
    was_open = is_open_.exchange(false, std::memory_order_acq_rel);
    calls.swap(calls_);
    requests.swap(requests_);
    opened = std::exchange(opened_, nullptr);
    writer_.clear();
    options_.clock->cancel(timer_);
    try {
      const bool is_refusal = status.code() != Code::unavailable && status.code() != Code::cancelled;
      is_lingering_ = tell_peer && was_open && is_refusal;
      if (tell_peer) say_goodbye(status);
    } catch (...) {
      tell_peer = is_lingering_ = false;
    }
    if (!tell_peer || (!is_writing_ && !is_lingering_)) stream_->close();
    // A callback is choosing the memory for a reply: that call is told of the end when the callback has returned.
    std::erase_if(calls, [&](const auto& entry) {
      if (entry.second->is_placing) entry.second->ended = status;
      return entry.second->is_placing;
    });
  }
  if (!was_open && (options_.log || options_.log_of_peer)) {
    detail::tell([&] {
      const std::string_view claimed = has_hello_ ? std::string_view(handshake_.peer().self.task) : std::string_view();
      log_of_peer(str_cat("no connection with ", detail::shown_name(claimed), claimed.empty() ? "" : " at ",
                          stream_->peer(), ": ", code_name(status.code()), ": ", status.message()));
    });
  }
  for (const auto& [request, call] : calls) {
    call->cancellation.try_deregister();
    if (call->has_timer) options_.clock->cancel(call->timer);
    detail::tell([&] { call->done(status, {}); });
  }
  for (auto& [request, asked] : requests) asked.source.cancel(status);
  CancellationSource(end_).cancel(status);
  detail::tell([&] {
    if (opened) opened(status, nullptr);
  });
  detail::tell([&] {
    if (was_open && handler_ != nullptr) handler_->on_closed(*this, status);
  });
}

void Connection::close(const Status& why) { fail(why, true); }

/// With the mutex held. The stream is closed when the goodbye is written or, if this side lingers, when the peer has
/// read it; or when the peer does not read it.
void Connection::say_goodbye(const Status& why) {
  std::string body;
  ByteWriter out(body);
  write_status(out, why);
  writer_.add({.type = FrameType::goodbye}, std::move(body));
  flush();
  if (!is_writing_ && !is_lingering_) return;
  timer_ = options_.clock->schedule_after(options_.heartbeat_interval, [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->stream_->close();
  });
}

// ---- reading ----

void Connection::read_next() {
  stream_->read_some(reader_.room(), read_count_, [self = shared_from_this()](const Status& status) {
    self->guarded([&] { self->on_read(status); });
  });
}

/// After the goodbye, bytes are dropped until the peer ends the stream. `read` is the end of the last read.
void Connection::linger(const Status& read) {
  constexpr std::size_t bytes_at_once = 4096;
  {
    const std::lock_guard lock(mutex_);
    if (!is_lingering_) return;
    if (!read.ok()) {
      is_lingering_ = false;
      options_.clock->cancel(timer_);
      return stream_->close();
    }
  }
  dropped_.resize(bytes_at_once);
  stream_->read_some(dropped_, read_count_, [self = shared_from_this()](const Status& status) {
    self->guarded([&] { self->linger(status); });
  });
}

Status Connection::lost(const Status& status) const {
  // Whoever cannot connect says the peer's name.
  if (!is_open()) {
    const bool is_refused = status.code() == Code::unauthenticated;
    return is_refused ? status : Status::unavailable(str_cat("the connection is lost: ", status.message()));
  }
  return Status::unavailable(str_cat("the connection with ", peer_name(), " is lost: ", status.message()));
}

void Connection::on_read(const Status& status) {
  if (!status.ok()) {
    fail(lost(status), false);
    return linger(status);
  }
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    is_over = !closed_.ok();
    is_answering_ = !is_over;
  }
  if (is_over) return linger(status);
  last_heard_.store(options_.clock->now().time_since_epoch().count(), std::memory_order_relaxed);
  try {
    if (options_.traffic != nullptr) options_.traffic->received_bytes.fetch_add(read_count_, std::memory_order_relaxed);
    reader_.take(read_count_);
  } catch (...) {
    fail(status_of_current_exception(), !is_farewell());
    return linger(status);
  }
  {
    const std::lock_guard lock(mutex_);
    is_answering_ = false;
    is_over = !closed_.ok();
    if (!is_over) flush();
  }
  is_over ? linger(status) : read_next();
}

void Connection::on_frame(const FrameHeader& header, std::string payload) {
  detail::check_flags(header);
  detail::check_number(header);
  if (!is_open() && header.type != FrameType::goodbye) {
    if (header.type == FrameType::hello) return take_hello(payload);
    if (header.type == FrameType::proof) return take_proof(payload);
    throw_error(Status::failed_precondition("the peer has not proved who it is"));
  }
  switch (header.type) {
    case FrameType::request:
      return take_request(header, std::move(payload));
    case FrameType::reply:
      return take_reply(header, std::move(payload));
    case FrameType::cancel:
      return take_cancel(header);
    case FrameType::credit: {
      ByteReader in(payload);
      const std::uint64_t bytes = in.u64();
      in.expect_end();
      const std::lock_guard lock(mutex_);
      if (writer_.credit() + bytes < bytes || writer_.credit() + bytes > handshake_.peer().window_bytes) {
        throw_error(Status::invalid_argument("the peer gives more credit than its window"));
      }
      writer_.add_credit(bytes);
      if (bytes != 0) could_send_ = options_.clock->now();
      return flush();
    }
    case FrameType::ping: {
      send(FrameType::pong, header.request, std::move(payload));
      const std::lock_guard lock(mutex_);
      return throw_if_error(check_answers());
    }
    case FrameType::pong: {
      const std::lock_guard lock(mutex_);
      return forget_posts(header.request);
    }
    case FrameType::goodbye: {
      ByteReader in(payload);
      const Status why = read_status(in);
      in.expect_end();
      is_farewell_.store(true, std::memory_order_release);
      throw_error(why.ok() ? Status::unavailable(str_cat(peer_name(), " has closed the connection"))
                           : handshake_.explain(why));
    }
    default:
      throw_error(Status::invalid_argument("a frame of the handshake after it"));
  }
}

void Connection::take_hello(std::string_view bytes) {
  if (has_hello_) throw_error(Status::invalid_argument("a second hello"));
  const Sha256Digest proof = handshake_.take_hello(bytes);
  has_hello_.store(true, std::memory_order_release);
  channel_ = handshake_.peer().role == Role::connector ? handshake_.peer().channel : own_channel_;
  std::string body(reinterpret_cast<const char*>(proof.data()), proof.size());
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  writer_.add({.type = FrameType::proof}, std::move(body));
  writer_.add_credit(handshake_.peer().window_bytes);
  has_sent_proof_ = true;
  flush();
}

void Connection::take_proof(std::string_view bytes) {
  if (!has_hello_) throw_error(Status::unauthenticated("a proof before the hello"));
  handshake_.take_proof(bytes);
  if (options_.budget) budget_ = options_.budget(peer());
  Opened opened;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    reader_.set_max_body_bytes(options_.max_body_bytes);
    options_.clock->cancel(timer_);
    schedule_keep_alive();
    // This comes last: a handler that is told of the open connection hears of no earlier failure.
    is_open_.store(true, std::memory_order_release);
    opened = std::exchange(opened_, nullptr);
  }
  if (opened) opened({}, shared_from_this());
}

// ---- writing ----

/// With the mutex held.
void Connection::flush() noexcept {
  try {
    write_queued();
  } catch (...) {
    give_up_writing();
  }
}

/// If a frame was lost on the way, the peer would wait for its rest. The reader meets the end of the stream, and ends
/// the connection.
void Connection::give_up_writing() noexcept {
  is_writing_ = true;
  stream_->close();
}

/// With the mutex held. One write at a time. Frames that come meanwhile go together in the next write, and so do the
/// answers to all frames of one read.
void Connection::write_queued() {
  constexpr std::uint64_t many_bytes = 64 << 10;
  if (is_writing_ || (is_answering_ && writer_.answer_bytes() < many_bytes)) return;
  auto batch = std::move(idle_batch_);
  if (batch == nullptr) batch = std::make_shared<FrameWriter::Batch>();
  for (;; batch->clear()) {
    if (!writer_.next(*batch)) {
      idle_batch_ = std::move(batch);
      return;
    }
    if (options_.traffic != nullptr) {
      std::uint64_t bytes = 0;
      for (const std::span<const std::byte>& part : batch->parts) bytes += part.size();
      options_.traffic->sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    std::size_t written = stream_->try_write(batch->parts);
    std::size_t part = 0;
    for (; part < batch->parts.size() && written >= batch->parts[part].size(); ++part)
      written -= batch->parts[part].size();
    if (part == batch->parts.size()) continue;
    batch->parts[part] = batch->parts[part].subspan(written);
    batch->parts.erase(batch->parts.begin(), batch->parts.begin() + static_cast<std::ptrdiff_t>(part));
    break;
  }
  is_writing_ = true;
  began_writing_ = options_.clock->now();
  stream_->write(batch->parts, [self = shared_from_this(), batch](const Status& status) {
    self->finish_write(status);
    batch->clear();
  });
}

void Connection::finish_write(const Status& status) {
  // Dropped by the stream for want of memory: perhaps within `flush`, with the mutex held, and to write no more.
  if (!status.ok() && status.code() != Code::unavailable) return stream_->close();
  bool is_closed = false;
  {
    const std::lock_guard lock(mutex_);
    is_closed = !closed_.ok();
    // Bytes that came before the stream ended may say why it did. The reader meets the end behind them, and nothing
    // more is written meanwhile.
    if (!is_closed && status.code() == Code::unavailable) return;
    is_writing_ = false;
    if (status.ok()) flush();  // once it is closed a goodbye may be left
    if (is_closed && (is_writing_ || is_lingering_)) return;
    if (is_closed) options_.clock->cancel(timer_);
  }
  if (is_closed) stream_->close();
}

/// With the mutex held.
Status Connection::check_requests() const {
  if (writer_.request_bytes() + held_bytes_ <= options_.max_request_bytes) return {};
  return Status::resource_exhausted(str_cat(peer_name(), " does not read what is sent to it")).with_task(peer_name());
}

/// With the mutex held.
Status Connection::check_answers() const {
  if (writer_.answer_bytes() <= options_.max_answer_bytes && writer_.num_payloads() / 2 <= options_.max_calls)
    return {};
  return Status::resource_exhausted(str_cat(peer_name(), " asks, and does not read the answers"));
}

void Connection::send(FrameType type, std::uint64_t request, std::string body, std::uint16_t flags) {
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  writer_.add({.type = type, .flags = flags, .request = request}, std::move(body));
  flush();
}

/// With the mutex held.
void Connection::send_message(FrameType type, std::uint64_t request, std::uint16_t flags, std::string body,
                              Payload payload) {
  writer_.add({.type = type, .flags = flags, .request = request}, std::move(body));
  if (payload.size() != 0) {
    const std::uint16_t of_reply = type == FrameType::reply ? detail::flag_of_reply : std::uint16_t{0};
    writer_.add_payload({.type = FrameType::chunk, .flags = of_reply, .request = request}, std::move(payload));
  }
  flush();
}

// ---- heartbeats ----

/// With the mutex held.
void Connection::schedule_keep_alive() {
  could_send_ = options_.clock->now();
  last_heard_.store(std::max(last_heard_.load(), options_.clock->now().time_since_epoch().count()));
  timer_ = options_.clock->schedule_after(until_next_look(), [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->keep_alive();
  });
}

/// With the mutex held: until the next heartbeat, or until a time limit is reached if that comes earlier.
Duration Connection::until_next_look() const {
  const Clock::time_point now = options_.clock->now();
  const Clock::time_point heard{Clock::duration(last_heard_.load(std::memory_order_relaxed))};
  Duration left = std::min(options_.heartbeat_interval, options_.heartbeat_timeout - (now - heard));
  if (is_writing_) left = std::min(left, options_.stall_timeout - (now - began_writing_));
  if (writer_.num_payloads() != 0) left = std::min(left, options_.stall_timeout - (now - could_send_));
  return std::max(left, Duration::zero());
}

/// Bytes that wait for a peer hold the memory that they are sent from.
Status Connection::check_stall() {
  const Clock::time_point now = options_.clock->now();
  const std::lock_guard lock(mutex_);
  if (is_writing_ && now - began_writing_ >= options_.stall_timeout) {
    return Status::resource_exhausted(str_cat(peer_name(), " does not read what is sent to it"));
  }
  if (writer_.credit() != 0 || writer_.num_payloads() == 0) could_send_ = now;
  if (now - could_send_ < options_.stall_timeout) return {};
  return Status::resource_exhausted(str_cat(peer_name(), " asks for tensors, and does not take them"));
}

void Connection::keep_alive() noexcept {
  guarded([this] { look_after(); });
}

void Connection::look_after() {
  const Clock::time_point heard{Clock::duration(last_heard_.load(std::memory_order_relaxed))};
  const Duration silence = options_.clock->now() - heard;
  if (silence >= options_.heartbeat_timeout) {
    return fail(
        Status::unavailable(str_cat(peer_name(), " has been silent for ",
                                    std::chrono::duration_cast<std::chrono::milliseconds>(silence).count(), " ms")),
        false);
  }
  if (Status stalled = check_stall(); !stalled.ok()) return fail(std::move(stalled), true);
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  if (silence >= options_.heartbeat_interval) {
    writer_.add({.type = FrameType::ping, .request = next_request_++}, {});
    flush();
  }
  timer_ = options_.clock->schedule_after(until_next_look(), [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->keep_alive();
  });
}

}  // namespace dflow::net
