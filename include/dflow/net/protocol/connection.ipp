#pragma once

#include <dflow/net/messages.hpp>
#include <dflow/net/protocol/connection.hpp>

#include <algorithm>
#include <cstring>

namespace dflow::net {

namespace detail {

// Flags of frames.
inline constexpr std::uint16_t flag_of_reply = 1;  ///< of chunks, cancels: they belong to a reply of their sender
inline constexpr std::uint16_t flag_error = 2;     ///< of replies: the body is a status
inline constexpr std::uint16_t flag_post = 4;      ///< of requests: nobody waits for a reply

/// Payloads of a request and of the reply to one of the same number are told apart by the lowest bit.
DFLOW_INLINE std::uint64_t inbound_key(std::uint64_t request, bool of_reply) noexcept {
  return request << 1 | (of_reply ? 1 : 0);
}

}  // namespace detail

/// A call that waits for its reply.
struct Connection::Pending {
  UniqueFunction<StatusOr<PayloadMemory>(std::string_view, std::uint64_t)> place_payload;
  CallDone done;
  TimerId timer{};
  bool has_timer = false;
  CancellationRegistration cancellation;
};

/// A payload that is on its way to this side.
struct Connection::Inbound {
  bool of_reply = false;
  std::uint64_t request = 0;
  std::uint64_t size = 0;
  std::uint64_t received = 0;
  PayloadMemory memory;  ///< of a reply; without bytes it is thrown away
  std::uint16_t method = 0;
  std::string body;
  std::vector<std::byte> bytes;  ///< of a request
};

DFLOW_INLINE Connection::Handler::~Handler() = default;

// ---- Responder ----

DFLOW_INLINE Responder& Responder::operator=(Responder&& other) noexcept {
  Responder old(std::move(*this));
  connection_ = std::move(other.connection_);
  request_ = other.request_;
  is_due_ = std::exchange(other.is_due_, false);
  return *this;
}

DFLOW_INLINE Responder::~Responder() {
  if (!is_due_) return;
  try {
    (*this)(internal("the request was dropped without a reply"));
  } catch (...) {  // no memory for it: the caller's deadline, or the end of the connection, ends the call
  }
}

DFLOW_INLINE void Responder::operator()(StatusOr<Outgoing> reply) {
  if (!std::exchange(is_due_, false)) return;
  if (const std::shared_ptr<Connection> connection = connection_.lock()) connection->reply(request_, std::move(reply));
}

// ---- beginning and end ----

DFLOW_INLINE void Connection::open(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options,
                                   std::shared_ptr<Handler> handler, Opened done) {
  std::make_shared<Connection>(std::move(stream), role, std::move(options), std::move(handler), std::move(done))
      ->start();
}

DFLOW_INLINE Connection::Connection(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options,
                                    std::shared_ptr<Handler> handler, Opened done)
    : stream_(std::move(stream)),
      options_(std::move(options)),
      own_channel_(options_.channel),
      handler_(std::move(handler)),
      handshake_({.role = role,
                  .channel = options_.channel,
                  .self = options_.self,
                  .secret = options_.secret,
                  .wanted = options_.expected_peer,
                  .window_bytes = options_.window_bytes,
                  .random = options_.random}),
      channel_(options_.channel),
      reader_(*this, options_.max_body_bytes, options_.chunk_bytes),
      window_left_(options_.window_bytes),
      opened_(std::move(done)),
      writer_(options_.chunk_bytes) {}

DFLOW_INLINE Connection::~Connection() = default;

DFLOW_INLINE std::string Connection::peer_name() const {
  return has_hello_ ? handshake_.peer().self.task : stream_->peer();
}

DFLOW_INLINE void Connection::start() {
  const std::lock_guard lock(mutex_);
  timer_ = options_.clock->schedule_after(options_.handshake_timeout, [weak = weak_from_this()] {
    const std::shared_ptr<Connection> self = weak.lock();
    if (self != nullptr && !self->is_open()) {
      self->fail(deadline_exceeded(str_cat(self->peer_name(), " has not introduced itself in time")), false);
    }
  });
  writer_.add({.type = FrameType::hello}, handshake_.hello());
  flush();
  read_next();
}

/// The first status counts. What waits is told outside of the lock.
DFLOW_INLINE void Connection::fail(Status status, bool tell_peer) {
  const std::shared_ptr<Connection> self = shared_from_this();
  status = status.with_task(peer_name());
  std::unordered_map<std::uint64_t, std::shared_ptr<Pending>> calls;
  std::unordered_map<std::uint64_t, CancellationSource> requests;
  Opened opened;
  bool was_open = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = status;
    was_open = is_open_.exchange(false, std::memory_order_acq_rel);
    calls.swap(calls_);
    requests.swap(requests_);
    opened = std::exchange(opened_, nullptr);
    writer_.clear();
    options_.clock->cancel(timer_);
    if (tell_peer && !is_writing_) {
      std::string body;
      ByteWriter out(body);
      write_status(out, status);
      writer_.add({.type = FrameType::goodbye}, std::move(body));
      flush();  // closes the stream when it is written
    }
    if (!is_writing_) stream_->close();
  }
  if (!was_open && options_.log) options_.log(str_cat("no connection with ", peer_name(), ": ", status.to_string()));
  for (const auto& [request, call] : calls) {
    call->cancellation.try_deregister();
    if (call->has_timer) options_.clock->cancel(call->timer);
    call->done(status, {});
  }
  for (auto& [request, source] : requests) source.cancel(status);
  if (opened) opened(status, nullptr);
  if (was_open && handler_ != nullptr) handler_->on_closed(*this, status);
}

DFLOW_INLINE void Connection::close(const Status& why) { fail(why, true); }

// ---- reading ----

DFLOW_INLINE void Connection::read_next() {
  stream_->read_some(reader_.room(), read_count_,
                     [self = shared_from_this()](const Status& status) { self->on_read(status); });
}

DFLOW_INLINE void Connection::on_read(const Status& status) {
  if (!status.ok()) {
    // An orderly end says no more than that: whoever was cut off is told who is gone.
    return fail(unavailable(str_cat("the connection with ", peer_name(), " is lost: ", status.message())), false);
  }
  last_heard_.store(options_.clock->now().time_since_epoch().count(), std::memory_order_relaxed);
  try {
    reader_.take(read_count_);
  } catch (...) {
    const Status error = status_of_current_exception();
    if (is_open() && !is_farewell_ && options_.log)
      options_.log(str_cat("the connection with ", peer_name(), " ends: ", error.to_string()));
    return fail(error, true);
  }
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
  }
  read_next();
}

DFLOW_INLINE void Connection::on_frame(const FrameHeader& header, std::string payload) {
  if (!is_open() && header.type != FrameType::goodbye) {
    if (header.type == FrameType::hello) return take_hello(payload);
    if (header.type == FrameType::proof) return take_proof(payload);
    throw_error(failed_precondition("the peer has not proved who it is"));
  }
  switch (header.type) {
    case FrameType::request:
      return take_request(header, payload);
    case FrameType::reply:
      return take_reply(header, payload);
    case FrameType::cancel: {
      CancellationSource source;
      {
        const std::lock_guard lock(mutex_);
        const auto found = requests_.find(header.request);
        if (found == requests_.end()) return;
        source = found->second;
      }
      source.cancel(cancelled(str_cat(peer().task, " does not wait any more")));
      return;
    }
    case FrameType::credit: {
      ByteReader in(payload);
      const std::uint64_t bytes = in.u64();
      in.expect_end();
      const std::lock_guard lock(mutex_);
      if (writer_.credit() + bytes < bytes || writer_.credit() + bytes > handshake_.peer().window_bytes) {
        throw_error(invalid_argument("the peer gives more credit than its window"));
      }
      writer_.add_credit(bytes);
      return flush();
    }
    case FrameType::ping:
      return send(FrameType::pong, header.request, std::move(payload));
    case FrameType::pong:
      return;
    case FrameType::goodbye: {
      ByteReader in(payload);
      const Status why = read_status(in);
      in.expect_end();
      is_farewell_ = true;
      throw_error(why.ok() ? unavailable(str_cat(peer_name(), " has closed the connection")) : why);
    }
    default:
      throw_error(invalid_argument("a frame of the handshake after it"));
  }
}

DFLOW_INLINE void Connection::take_hello(std::string_view bytes) {
  if (has_hello_) throw_error(invalid_argument("a second hello"));
  const Sha256Digest proof = handshake_.take_hello(bytes);
  has_hello_ = true;
  channel_ = handshake_.peer().role == Role::connector ? handshake_.peer().channel : own_channel_;
  std::string body(reinterpret_cast<const char*>(proof.data()), proof.size());
  const std::lock_guard lock(mutex_);
  writer_.add({.type = FrameType::proof}, std::move(body));
  writer_.add_credit(handshake_.peer().window_bytes);
  has_sent_proof_ = true;
  flush();
}

DFLOW_INLINE void Connection::take_proof(std::string_view bytes) {
  if (!has_hello_) throw_error(unauthenticated("a proof before the hello"));
  handshake_.take_proof(bytes);
  Opened opened;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    is_open_.store(true, std::memory_order_release);
    opened = std::exchange(opened_, nullptr);
    options_.clock->cancel(timer_);
    schedule_keep_alive();
  }
  if (opened) opened({}, shared_from_this());
}

DFLOW_INLINE void Connection::take_request(const FrameHeader& header, std::string_view payload) {
  ByteReader in(payload);
  const std::uint16_t method = in.u16();
  const std::uint64_t size = in.u64();
  std::string body(payload.substr(in.position()));
  if ((header.flags & detail::flag_post) != 0) {
    if (size != 0) throw_error(invalid_argument("a request without a reply cannot have a payload"));
    return deliver_post(method, std::move(body));
  }
  if (size == 0) return deliver_request(header.request, method, std::move(body), {});
  if (size > options_.max_request_payload_bytes) {
    throw_error(
        out_of_range(str_cat("a request with ", size, " bytes, more than ", options_.max_request_payload_bytes)));
  }
  if (inbound_.size() >= options_.max_calls) throw_error(resource_exhausted("too many payloads at once"));
  Inbound inbound;
  inbound.request = header.request;
  inbound.size = size;
  inbound.method = method;
  inbound.body = std::move(body);
  if (!inbound_.try_emplace(detail::inbound_key(header.request, false), std::move(inbound)).second) {
    throw_error(invalid_argument("two requests of one number"));
  }
}

DFLOW_INLINE void Connection::deliver_request(std::uint64_t request, std::uint16_t method, std::string body,
                                              std::vector<std::byte> payload) {
  Incoming incoming{method, std::move(body), std::move(payload), {}};
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() >= options_.max_calls) {
      throw_error(resource_exhausted(str_cat("more than ", options_.max_calls, " requests at once")));
    }
    const auto [found, is_new] = requests_.try_emplace(request);
    if (!is_new) throw_error(invalid_argument("two requests of one number"));
    incoming.cancellation = found->second.token();
  }
  if (handler_ != nullptr) handler_->on_request(shared_from_this(), std::move(incoming), {weak_from_this(), request});
}

DFLOW_INLINE void Connection::deliver_post(std::uint16_t method, std::string body) {
  if (handler_ != nullptr) handler_->on_request(shared_from_this(), {method, std::move(body), {}, {}}, {});
}

DFLOW_INLINE void Connection::take_reply(const FrameHeader& header, std::string_view payload) {
  std::shared_ptr<Pending> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(header.request);
    if (found != calls_.end()) call = found->second;
  }
  ByteReader in(payload);
  if ((header.flags & detail::flag_error) != 0) {
    const Status status = read_status(in);
    in.expect_end();
    return finish_call(header.request, status.ok() ? internal("a reply that is an error without one") : status, {});
  }
  const std::uint64_t size = in.u64();
  std::string body(payload.substr(in.position()));
  if (size == 0) return finish_call(header.request, {}, std::move(body));
  Inbound inbound;
  inbound.of_reply = true;
  inbound.request = header.request;
  inbound.size = size;
  if (call != nullptr) {
    StatusOr<PayloadMemory> memory =
        call->place_payload ? call->place_payload(body, size) : Status(internal("a reply with bytes nobody asked for"));
    if (memory.ok() && memory->bytes.size() != size)
      memory = Status(internal("the memory for a reply is of another size"));
    if (memory.ok()) {
      inbound.memory = std::move(*memory);
    } else {
      finish_call(header.request, memory.status(), {});
    }
  }
  inbound.body = std::move(body);
  if (inbound_.size() >= options_.max_calls) throw_error(resource_exhausted("too many payloads at once"));
  if (!inbound_.try_emplace(detail::inbound_key(header.request, true), std::move(inbound)).second) {
    throw_error(invalid_argument("two replies to one request"));
  }
}

DFLOW_INLINE std::span<std::byte> Connection::on_chunk(const FrameHeader& header) {
  if (!is_open()) throw_error(failed_precondition("the peer has not proved who it is"));
  const auto found = inbound_.find(detail::inbound_key(header.request, (header.flags & detail::flag_of_reply) != 0));
  if (found == inbound_.end()) throw_error(invalid_argument("a chunk that belongs to nothing"));
  Inbound& inbound = found->second;
  if (header.length == 0 || header.length > inbound.size - inbound.received) {
    throw_error(invalid_argument("a chunk that does not fit what was announced"));
  }
  if (header.length > window_left_) throw_error(invalid_argument("the peer sends more than it has credit for"));
  window_left_ -= header.length;
  if (!inbound.of_reply) {
    inbound.bytes.resize(static_cast<std::size_t>(inbound.received + header.length));
    return std::span(inbound.bytes).subspan(static_cast<std::size_t>(inbound.received));
  }
  if (inbound.memory.bytes.empty()) return {};
  return inbound.memory.bytes.subspan(static_cast<std::size_t>(inbound.received),
                                      static_cast<std::size_t>(header.length));
}

DFLOW_INLINE void Connection::on_chunk_end(const FrameHeader& header) {
  taken_ += header.length;
  if (taken_ >= options_.window_bytes / 4) {
    std::string body;
    ByteWriter out(body);
    out.u64(taken_);
    window_left_ += std::exchange(taken_, 0);
    send(FrameType::credit, 0, std::move(body));
  }
  const std::uint64_t key = detail::inbound_key(header.request, (header.flags & detail::flag_of_reply) != 0);
  Inbound& inbound = inbound_.find(key)->second;
  inbound.received += header.length;
  if (inbound.received == inbound.size) complete(key);
}

DFLOW_INLINE void Connection::complete(std::uint64_t key) {
  const auto found = inbound_.find(key);
  Inbound inbound = std::move(found->second);
  inbound_.erase(found);
  if (!inbound.of_reply) {
    return deliver_request(inbound.request, inbound.method, std::move(inbound.body), std::move(inbound.bytes));
  }
  inbound.memory = {};  // whoever asked for it has it alone
  finish_call(inbound.request, {}, std::move(inbound.body));
}

// ---- writing ----

/// With the mutex held. One write at a time; what comes meanwhile goes together in the next.
DFLOW_INLINE void Connection::flush() {
  if (is_writing_) return;
  auto batch = std::move(idle_batch_);
  if (batch == nullptr) batch = std::make_shared<FrameWriter::Batch>();
  for (;; batch->clear()) {
    if (!writer_.next(*batch)) {
      idle_batch_ = std::move(batch);
      return;
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
  stream_->write(batch->parts, [self = shared_from_this(), batch](const Status& status) {
    bool is_closed = false;
    {
      const std::lock_guard lock(self->mutex_);
      self->is_writing_ = false;
      is_closed = !self->closed_.ok();
      if (status.ok() && !is_closed) self->flush();
    }
    batch->clear();
    if (is_closed) {
      self->stream_->close();
    } else if (!status.ok()) {
      self->fail(unavailable(str_cat("the connection with ", self->peer_name(), " is lost: ", status.message())),
                 false);
    }
  });
}

DFLOW_INLINE void Connection::send(FrameType type, std::uint64_t request, std::string body, std::uint16_t flags) {
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  writer_.add({.type = type, .flags = flags, .request = request}, std::move(body));
  flush();
}

/// With the mutex held.
DFLOW_INLINE void Connection::send_message(FrameType type, std::uint64_t request, std::uint16_t flags, std::string body,
                                           Payload payload) {
  writer_.add({.type = type, .flags = flags, .request = request}, std::move(body));
  if (payload.size() != 0) {
    const std::uint16_t of_reply = type == FrameType::reply ? detail::flag_of_reply : std::uint16_t{0};
    writer_.add_payload({.type = FrameType::chunk, .flags = of_reply, .request = request}, std::move(payload));
  }
  flush();
}

// ---- calls ----

DFLOW_INLINE void Connection::call(Call call, CallDone done) {
  std::string body;
  ByteWriter out(body);
  out.u16(call.method);
  out.u64(call.message.payload.size());
  body += call.message.body;
  if (body.size() > options_.max_body_bytes) {
    return done(invalid_argument(str_cat("a request of ", body.size(), " bytes, more than ", options_.max_body_bytes)),
                {});
  }
  if (call.cancellation.is_cancelled()) return done(call.cancellation.status(), {});
  const auto pending = std::make_shared<Pending>();
  pending->place_payload = std::move(call.place_payload);
  pending->done = std::move(done);
  std::uint64_t request = 0;
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) {
      refused = unavailable(str_cat("the connection has ended: ", closed_.message())).with_task(peer_name());
    } else if (calls_.size() >= options_.max_calls) {
      refused = resource_exhausted(str_cat("more than ", options_.max_calls, " calls at once")).with_task(peer_name());
    } else {
      request = next_request_++;
      calls_.emplace(request, pending);
      if (call.deadline != Clock::never) {
        pending->has_timer = true;
        pending->timer = options_.clock->schedule_at(call.deadline, [weak = weak_from_this(), request] {
          if (const std::shared_ptr<Connection> self = weak.lock()) {
            self->give_up(request, deadline_exceeded(str_cat(self->peer_name(), " has not answered in time")));
          }
        });
      }
      send_message(FrameType::request, request, 0, std::move(body), std::move(call.message.payload));
    }
  }
  if (!refused.ok()) return pending->done(std::move(refused), {});
  if (!call.cancellation.can_be_cancelled()) return;
  CancellationRegistration registration =
      call.cancellation.on_cancel([weak = weak_from_this(), request](const Status& why) {
        if (const std::shared_ptr<Connection> self = weak.lock()) self->give_up(request, why);
      });
  const std::lock_guard lock(mutex_);
  if (calls_.contains(request)) {
    pending->cancellation = std::move(registration);
  } else {
    registration.try_deregister();
  }
}

DFLOW_INLINE Status Connection::post(std::uint16_t method, std::string body) {
  std::string framed;
  framed.reserve(sizeof(std::uint16_t) + sizeof(std::uint64_t) + body.size());
  ByteWriter out(framed);
  out.u16(method);
  out.u64(0);
  framed += body;
  if (framed.size() > options_.max_body_bytes) {
    return invalid_argument(str_cat("a request of ", framed.size(), " bytes, more than ", options_.max_body_bytes));
  }
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) {
    return unavailable(str_cat("the connection has ended: ", closed_.message())).with_task(peer_name());
  }
  send_message(FrameType::request, next_request_++, detail::flag_post, std::move(framed), {});
  return {};
}

DFLOW_INLINE void Connection::give_up(std::uint64_t request, Status status) {
  {
    const std::lock_guard lock(mutex_);
    if (!calls_.contains(request) || !closed_.ok()) return;
    writer_.add({.type = FrameType::cancel, .request = request}, {});
    flush();
  }
  finish_call(request, status.with_task(peer_name()), {});
}

DFLOW_INLINE void Connection::finish_call(std::uint64_t request, Status status, std::string body) {
  std::shared_ptr<Pending> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found == calls_.end()) return;
    call = std::move(found->second);
    calls_.erase(found);
    call->cancellation.try_deregister();
    if (call->has_timer) options_.clock->cancel(call->timer);
  }
  call->done(std::move(status), std::move(body));
}

DFLOW_INLINE void Connection::reply(std::uint64_t request, StatusOr<Outgoing> outcome) {
  std::string body;
  ByteWriter out(body);
  Payload payload;
  std::uint16_t flags = 0;
  if (outcome.ok() && outcome->body.size() + sizeof(std::uint64_t) > options_.max_body_bytes) {
    outcome =
        Status(internal(str_cat("a reply of ", outcome->body.size(), " bytes, more than ", options_.max_body_bytes)));
  }
  if (outcome.ok()) {
    payload = std::move(outcome->payload);
    out.u64(payload.size());
    body += outcome->body;
  } else {
    flags = detail::flag_error;
    write_status(out, outcome.status());
  }
  const std::lock_guard lock(mutex_);
  if (!closed_.ok() || requests_.erase(request) == 0) return;
  send_message(FrameType::reply, request, flags, std::move(body), std::move(payload));
}

// ---- heartbeats ----

/// With the mutex held.
DFLOW_INLINE void Connection::schedule_keep_alive() {
  last_heard_.store(std::max(last_heard_.load(), options_.clock->now().time_since_epoch().count()));
  timer_ = options_.clock->schedule_after(options_.heartbeat_interval, [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->keep_alive();
  });
}

DFLOW_INLINE void Connection::keep_alive() {
  const Clock::time_point heard{Clock::duration(last_heard_.load(std::memory_order_relaxed))};
  const Duration silence = options_.clock->now() - heard;
  if (silence >= options_.heartbeat_timeout) {
    return fail(unavailable(str_cat(peer_name(), " has been silent for ",
                                    std::chrono::duration_cast<std::chrono::milliseconds>(silence).count(), " ms")),
                false);
  }
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return;
  if (silence >= options_.heartbeat_interval) {
    writer_.add({.type = FrameType::ping, .request = next_request_++}, {});
    flush();
  }
  timer_ = options_.clock->schedule_after(options_.heartbeat_interval, [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) self->keep_alive();
  });
}

}  // namespace dflow::net
