#pragma once

#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace dflow::net {

namespace detail {

// Flags of frames.
inline constexpr std::uint16_t flag_of_reply = 1;  ///< of chunks, cancels: it is about a reply of their sender's
inline constexpr std::uint16_t flag_error = 2;     ///< of replies: the body is a status
inline constexpr std::uint16_t flag_post = 4;      ///< of requests: nobody waits for a reply

/// The limit on one message of a peer that has not proved its identity.
inline constexpr std::uint64_t max_handshake_bytes = std::uint64_t{16} << 10;

/// Errors: InvalidArgument for bits that the type does not know.
void check_flags(const FrameHeader& header) {
  std::uint16_t known = 0;
  if (header.type == FrameType::request) known = flag_post;
  if (header.type == FrameType::reply) known = flag_error;
  if (header.type == FrameType::chunk || header.type == FrameType::cancel) known = flag_of_reply;
  if ((header.flags & ~known) == 0) return;
  throw_error(Status::invalid_argument(
      str_cat("a frame of type ", static_cast<int>(header.type), " with the unknown flags ", header.flags & ~known)));
}

/// Errors: InvalidArgument for a number that no request has.
void check_number(const FrameHeader& header) {
  if (header.request >> 63 == 0) return;
  throw_error(Status::invalid_argument(
      str_cat("a frame about the request ", header.request, ": their numbers are below 2^63")));
}

/// Puts numbers, little-endian, before a body: in its own memory where that has room.
template <class... Numbers>
void put_before(std::string& body, Numbers... numbers) {
  std::array<char, (sizeof(Numbers) + ...)> head;
  std::size_t at = 0;
  ((std::memcpy(head.data() + at, &numbers, sizeof(Numbers)), at += sizeof(Numbers)), ...);
  if (body.capacity() - body.size() >= head.size()) {
    body.insert(0, head.data(), head.size());
    return;
  }
  std::string whole;
  whole.reserve(head.size() + body.size());
  whole.append(head.data(), head.size()).append(body);
  body = std::move(whole);
}

/// The status of calls after the end of a connection. What is lost says so itself.
Status ended_by(const Status& closed) {
  if (closed.code() == Code::unavailable) return closed;
  return Status::unavailable(str_cat("the connection has ended: ", closed.message()));
}

/// Payloads of a request and of the reply to one of the same number are told apart by the lowest bit.
std::uint64_t inbound_key(std::uint64_t request, bool of_reply) noexcept { return request << 1 | (of_reply ? 1 : 0); }

}  // namespace detail

/// A call that waits for its reply.
struct Connection::Pending {
  UniqueFunction<StatusOr<PayloadMemory>(std::string_view, std::uint64_t)> place_payload;
  CallDone done;
  TimerId timer{};
  bool has_timer = false;
  /// The reader is asking for the payload's memory. A thread that ends the call meanwhile sets `ended`, and leaves it
  /// to the reader to tell the caller.
  bool is_placing = false;
  Status ended;
  CancellationRegistration cancellation;
};

/// A payload that is on its way to this side.
struct Connection::Inbound {
  bool of_reply = false;
  std::uint64_t request = 0;
  std::uint64_t size = 0;
  std::uint64_t received = 0;
  PayloadMemory memory;         ///< of a reply; without bytes it is thrown away
  std::weak_ptr<Pending> call;  ///< of a reply: gone when nobody waits for it any more
  std::uint16_t method = 0;
  std::string body;
  std::vector<std::byte> bytes;  ///< of a request
  ByteCharge charge;             ///< of a request
  bool is_refused = false;       ///< a request: it has its answer, and the rest is thrown away
};

namespace detail {

/// A request costs at least so many bytes until it is answered.
inline constexpr std::uint64_t request_bytes = 512;

/// Makes room for `more` bytes, and charges it.
Status grow(std::vector<std::byte>& bytes, std::uint64_t more, std::uint64_t most, ByteCharge& charge) {
  const std::uint64_t needed = bytes.size() + more;
  if (needed > bytes.capacity()) {
    const std::uint64_t capacity = std::max(needed, std::min<std::uint64_t>(2 * bytes.capacity(), most));
    if (Status full = charge.add(capacity - bytes.capacity()); !full.ok()) return full;
    bytes.reserve(static_cast<std::size_t>(capacity));
  }
  bytes.resize(static_cast<std::size_t>(needed));
  return {};
}

/// The payload, charged until it has been sent.
Payload charged(Payload payload, ByteCharge charge) {
  struct Owner {
    std::shared_ptr<const void> bytes;
    ByteCharge charge;
  };
  payload.owner = std::make_shared<Owner>(Owner{std::move(payload.owner), std::move(charge)});
  return payload;
}

}  // namespace detail

Connection::Handler::~Handler() = default;

// ---- Responder ----

Responder& Responder::operator=(Responder&& other) noexcept {
  Responder old(std::move(*this));
  connection_ = std::move(other.connection_);
  request_ = other.request_;
  is_due_ = std::exchange(other.is_due_, false);
  return *this;
}

Responder::~Responder() {
  if (!is_due_) return;
  try {
    (*this)(Status::internal("the request was dropped without a reply"));
  } catch (...) {  // no memory for the words
    (*this)(Status::out_of_memory());
  }
}

void Responder::operator()(StatusOr<Outgoing> reply) {
  if (!std::exchange(is_due_, false)) return;
  if (const std::shared_ptr<Connection> connection = connection_.lock()) connection->reply(request_, std::move(reply));
}

// ---- requests and replies of the peer ----

void Connection::take_request(const FrameHeader& header, std::string body) {
  ByteReader in(body);
  const std::uint16_t method = in.u16();
  const std::uint64_t size = in.u64();
  body.erase(0, in.position());
  if ((header.flags & detail::flag_post) != 0) {
    if (size != 0) throw_error(Status::invalid_argument("a request without a reply cannot have a payload"));
    return deliver_post(method, std::move(body));
  }
  ByteCharge charge(budget_);
  const Status full = charge.add(body.size() + detail::request_bytes);
  if (size == 0) {
    // A client that has used its budget can still ask to have something forgotten.
    if (!full.ok() && body.size() > detail::request_bytes / 2) return refuse(header.request, full);
    return deliver_request(header.request, {method, std::move(body), {}, {}, budget_}, std::move(charge));
  }
  if (size > options_.max_request_payload_bytes) {
    throw_error(Status::out_of_range(
        str_cat("a request with ", size, " bytes, more than ", options_.max_request_payload_bytes)));
  }
  if (inbound_.size() >= options_.max_calls) throw_error(Status::resource_exhausted("too many payloads at once"));
  Inbound inbound;
  inbound.request = header.request;
  inbound.size = size;
  inbound.method = method;
  inbound.is_refused = !full.ok();
  if (full.ok()) inbound.body = std::move(body);
  inbound.charge = std::move(charge);
  if (!inbound_.try_emplace(detail::inbound_key(header.request, false), std::move(inbound)).second) {
    throw_error(Status::invalid_argument("two requests of one number"));
  }
  if (!full.ok()) refuse(header.request, full);
}

/// Answers a request that is not delivered.
void Connection::refuse(std::uint64_t request, const Status& status) {
  std::string body;
  ByteWriter out(body);
  write_status(out, status);
  send(FrameType::reply, request, std::move(body), detail::flag_error);
  const std::lock_guard lock(mutex_);
  throw_if_error(check_answers());
}

void Connection::deliver_request(std::uint64_t request, Incoming incoming, ByteCharge charge) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    if (requests_.size() >= options_.max_calls) {
      throw_error(Status::resource_exhausted(str_cat("more than ", options_.max_calls, " requests at once")));
    }
    const auto [found, is_new] = requests_.try_emplace(request);
    if (!is_new) throw_error(Status::invalid_argument("two requests of one number"));
    found->second.charge = std::move(charge);
    incoming.cancellation = found->second.source.token();
  }
  if (handler_ != nullptr) handler_->on_request(shared_from_this(), std::move(incoming), {weak_from_this(), request});
}

void Connection::deliver_post(std::uint16_t method, std::string body) {
  if (!is_open() || handler_ == nullptr) return;
  handler_->on_request(shared_from_this(), {method, std::move(body), {}, {}, budget_}, {});
}

void Connection::take_reply(const FrameHeader& header, std::string body) {
  std::shared_ptr<Pending> call;
  {
    const std::lock_guard lock(mutex_);
    forget_posts(header.request);
    const auto found = calls_.find(header.request);
    if (found != calls_.end()) call = found->second;
  }
  ByteReader in(body);
  if ((header.flags & detail::flag_error) != 0) {
    const Status status = read_status(in);
    in.expect_end();
    return finish_call(header.request, status.ok() ? Status::internal("a reply that is an error without one") : status,
                       {});
  }
  const std::uint64_t size = in.u64();
  body.erase(0, in.position());
  if (size == 0) return finish_call(header.request, {}, std::move(body));
  Inbound inbound;
  inbound.of_reply = true;
  inbound.request = header.request;
  inbound.size = size;
  if (call != nullptr) place_reply(call, inbound, body);
  inbound.call = call;
  if (!inbound.memory.bytes.empty()) inbound.body = std::move(body);
  if (inbound_.size() >= options_.max_calls) throw_error(Status::resource_exhausted("too many payloads at once"));
  if (!inbound_.try_emplace(detail::inbound_key(header.request, true), std::move(inbound)).second) {
    throw_error(Status::invalid_argument("two replies to one request"));
  }
}

/// Asks the caller where the bytes go. They are thrown away if it does not know, or has given up.
void Connection::place_reply(const std::shared_ptr<Pending>& call, Inbound& inbound, std::string_view body) {
  StatusOr<PayloadMemory> memory = Status(Status::internal("a reply with bytes nobody asked for"));
  {
    const std::lock_guard lock(mutex_);
    if (!calls_.contains(inbound.request)) return;  // it has ended meanwhile
    call->is_placing = true;
  }
  // Even if the callback throws, a thread that ends the call meanwhile leaves it to this function.
  try {
    if (call->place_payload) memory = call->place_payload(body, inbound.size);
    if (memory.ok() && memory->bytes.size() != inbound.size) {
      memory = Status(Status::internal("the memory for a reply is of another size"));
    }
  } catch (...) {
    memory = status_of_current_exception();
  }
  Status ended;
  bool is_taken = false;  // out of `calls_`, by the thread that has ended all
  {
    const std::lock_guard lock(mutex_);
    call->is_placing = false;
    ended = call->ended;
    is_taken = !calls_.contains(inbound.request);
  }
  if (ended.ok() && memory.ok()) {
    inbound.memory = std::move(*memory);
    return;
  }
  if (ended.ok()) ended = memory.status();
  if (!is_taken) return finish_call(inbound.request, std::move(ended), {});
  call->cancellation.try_deregister();
  if (call->has_timer) options_.clock->cancel(call->timer);
  call->done(std::move(ended), {});
}

/// Nobody waits for the reply any more, or for the rest of the request; or the rest of a reply does not come.
void Connection::take_cancel(const FrameHeader& header) {
  const bool of_reply = (header.flags & detail::flag_of_reply) != 0;
  inbound_.erase(detail::inbound_key(header.request, of_reply));
  if (of_reply)
    return finish_call(header.request, Status::cancelled(str_cat(peer().task, " does not send the rest")), {});
  CancellationSource source;
  {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(header.request);
    if (found == requests_.end()) {
      const FrameHeader chunks{.type = FrameType::chunk, .flags = detail::flag_of_reply, .request = header.request};
      if (!writer_.drop_payload(chunks)) return;
      writer_.add({.type = FrameType::cancel, .flags = detail::flag_of_reply, .request = header.request}, {});
      return flush();
    }
    source = found->second.source;
  }
  source.cancel(Status::cancelled(str_cat(peer().task, " does not wait any more")));
}

std::span<std::byte> Connection::on_chunk(const FrameHeader& header) {
  if (!is_open()) throw_error(Status::failed_precondition("the peer has not proved who it is"));
  detail::check_flags(header);
  detail::check_number(header);
  const auto found = inbound_.find(detail::inbound_key(header.request, (header.flags & detail::flag_of_reply) != 0));
  if (found == inbound_.end()) throw_error(Status::invalid_argument("a chunk that belongs to nothing"));
  Inbound& inbound = found->second;
  if (header.length == 0 || header.length > inbound.size - inbound.received) {
    throw_error(Status::invalid_argument("a chunk that does not fit what was announced"));
  }
  if (header.length > window_left_) throw_error(Status::invalid_argument("the peer sends more than it has credit for"));
  window_left_ -= header.length;
  if (!inbound.of_reply && !inbound.is_refused) {
    const Status full = detail::grow(inbound.bytes, header.length, inbound.size, inbound.charge);
    if (full.ok()) return std::span(inbound.bytes).subspan(static_cast<std::size_t>(inbound.received));
    inbound.is_refused = true;
    std::vector<std::byte>().swap(inbound.bytes);  // an assignment would keep the memory
    std::string().swap(inbound.body);
    inbound.charge.release();
    refuse(header.request, full);
  }
  if (!inbound.of_reply) return {};
  if (inbound.call.expired()) inbound.memory = {};  // given up on the way: the rest is thrown away
  if (inbound.memory.bytes.empty()) return {};
  return inbound.memory.bytes.subspan(static_cast<std::size_t>(inbound.received),
                                      static_cast<std::size_t>(header.length));
}

void Connection::on_chunk_end(const FrameHeader& header) {
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

void Connection::complete(std::uint64_t key) {
  const auto found = inbound_.find(key);
  Inbound inbound = std::move(found->second);
  inbound_.erase(found);
  if (inbound.is_refused) return;
  if (!inbound.of_reply) {
    Incoming incoming{inbound.method, std::move(inbound.body), std::move(inbound.bytes), {}, budget_};
    return deliver_request(inbound.request, std::move(incoming), std::move(inbound.charge));
  }
  inbound.memory = {};  // only the caller that asked for it keeps it
  finish_call(inbound.request, {}, std::move(inbound.body));
}

// ---- calls ----

void Connection::call(Call call, CallDone done) noexcept {
  std::uint64_t request = 0;
  Status refused;
  try {
    refused = begin_call(call, done, request);
  } catch (...) {
    refused = status_of_current_exception();
  }
  if (refused.ok()) return;
  detail::tell([&] {
    // If the call has begun, another thread may have ended it.
    if (done) return done(std::move(refused), {});
    finish_call(request, std::move(refused), {});
  });
}

/// Takes `done` when the call has its number, and then is ended by that.
Status Connection::begin_call(Call& call, CallDone& done, std::uint64_t& request) {
  std::string body = std::move(call.message.body);
  detail::put_before(body, call.method, call.message.payload.size());
  if (body.size() > options_.max_body_bytes) {
    return Status::invalid_argument(
        str_cat("a request of ", body.size(), " bytes, more than ", options_.max_body_bytes));
  }
  if (call.cancellation.is_cancelled()) return call.cancellation.status();
  const auto pending = std::make_shared<Pending>();
  pending->place_payload = std::move(call.place_payload);
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) {
      return detail::ended_by(closed_).with_task(peer_name());
    }
    if (calls_.size() >= options_.max_calls) {
      return Status::resource_exhausted(str_cat("more than ", options_.max_calls, " calls at once"))
          .with_task(peer_name());
    }
    if (Status full = check_requests(); !full.ok()) return full;
    calls_.emplace(next_request_, pending);
    request = next_request_++;
    pending->done = std::move(done);
    done = nullptr;
    if (call.deadline != Clock::never) {
      pending->timer = options_.clock->schedule_at(call.deadline, [weak = weak_from_this(), request] {
        const std::shared_ptr<Connection> self = weak.lock();
        if (self == nullptr) return;
        self->guarded([&] {
          self->give_up(request, Status::deadline_exceeded(str_cat(self->peer_name(), " has not answered in time")));
        });
      });
      pending->has_timer = true;
    }
    send_message(FrameType::request, request, 0, std::move(body), std::move(call.message.payload));
  }
  if (!call.cancellation.can_be_cancelled()) return {};
  CancellationRegistration registration =
      call.cancellation.on_cancel([weak = weak_from_this(), request](const Status& why) {
        if (const std::shared_ptr<Connection> self = weak.lock()) self->guarded([&] { self->give_up(request, why); });
      });
  const std::lock_guard lock(mutex_);
  if (calls_.contains(request)) {
    pending->cancellation = std::move(registration);
  } else {
    registration.try_deregister();
  }
  return {};
}

Status Connection::post(std::uint16_t method, std::string body, std::optional<std::uint64_t> mark,
                        UniqueFunction<bool()> is_wanted) {
  detail::put_before(body, method, std::uint64_t{0});
  if (body.size() > options_.max_body_bytes) {
    return Status::invalid_argument(
        str_cat("a request of ", body.size(), " bytes, more than ", options_.max_body_bytes));
  }
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) {
    return detail::ended_by(closed_).with_task(peer_name());
  }
  if (Status full = check_requests(); !full.ok()) return full;
  if (!mark.has_value()) {
    send_message(FrameType::request, next_request_++, detail::flag_post, std::move(body), {});
    return {};
  }
  if (held_posts_.empty() && posts_.size() < options_.max_unread_posts) {
    send_post(std::move(body), *mark);
    return {};
  }
  if (held_posts_.size() >= options_.max_unread_posts) {
    std::erase_if(held_posts_, [this](HeldPost& held) {
      const bool is_left_out = held.is_wanted && !held.is_wanted();
      if (is_left_out) held_bytes_ -= held.body.size();
      return is_left_out;
    });
  }
  if (held_posts_.size() >= options_.max_unread_posts) {
    return Status::resource_exhausted(str_cat(peer_name(), " does not read what is sent to it")).with_task(peer_name());
  }
  held_bytes_ += body.size();
  held_posts_.push_back({std::move(body), *mark, std::move(is_wanted)});
  return {};
}

/// With the mutex held.
void Connection::send_post(std::string body, std::uint64_t mark) {
  if (posts_since_ping_ >= options_.max_unread_posts / 64) {
    posts_since_ping_ = 0;
    writer_.add({.type = FrameType::ping, .request = next_request_++}, {});
  }
  ++posts_since_ping_;
  posts_.add(next_request_, mark);
  send_message(FrameType::request, next_request_++, detail::flag_post, std::move(body), {});
}

/// With the mutex held: the peer has read all posts before that request, so that there is room for others.
void Connection::forget_posts(std::uint64_t request) {
  posts_.acknowledge(request);
  while (closed_.ok() && !held_posts_.empty() && posts_.size() < options_.max_unread_posts) {
    HeldPost next = std::move(held_posts_.front());
    held_posts_.pop_front();
    held_bytes_ -= next.body.size();
    if (!next.is_wanted || next.is_wanted()) send_post(std::move(next.body), next.mark);
  }
}

std::vector<std::uint64_t> Connection::unread_posts() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> marks = posts_.marks();
  for (const HeldPost& held : held_posts_) marks.push_back(held.mark);
  return marks;
}

void Connection::give_up(std::uint64_t request, Status status) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found == calls_.end() || !found->second->ended.ok()) return;
    writer_.drop_payload({.type = FrameType::chunk, .request = request});
    writer_.add({.type = FrameType::cancel, .request = request}, {});
    flush();
  }
  finish_call(request, status.with_task(peer_name()), {});
}

void Connection::finish_call(std::uint64_t request, Status status, std::string body) {
  std::shared_ptr<Pending> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found == calls_.end()) return;
    if (found->second->is_placing) {
      if (found->second->ended.ok()) found->second->ended = std::move(status);
      return;
    }
    call = std::move(found->second);
    calls_.erase(found);
    call->cancellation.try_deregister();
    if (call->has_timer) options_.clock->cancel(call->timer);
  }
  call->done(std::move(status), std::move(body));
}

/// If there is no memory for a reply, the connection ends: otherwise the peer would wait for the reply.
void Connection::reply(std::uint64_t request, StatusOr<Outgoing> outcome) noexcept {
  Status wrong;
  try {
    wrong = answer(request, std::move(outcome));
  } catch (...) {
    wrong = status_of_current_exception();
  }
  if (!wrong.ok()) fail(std::move(wrong), true);
}

Status Connection::answer(std::uint64_t request, StatusOr<Outgoing> outcome) {
  std::string body;
  Payload payload;
  std::uint16_t flags = 0;
  if (outcome.ok() && outcome->body.size() + sizeof(std::uint64_t) > options_.max_body_bytes) {
    outcome = Status(
        Status::internal(str_cat("a reply of ", outcome->body.size(), " bytes, more than ", options_.max_body_bytes)));
  }
  if (outcome.ok() && outcome->payload.size() != 0 && budget_ != nullptr) {
    ByteCharge charge(budget_);
    if (Status full = charge.add(outcome->payload.size()); full.ok()) {
      outcome->payload = detail::charged(std::move(outcome->payload), std::move(charge));
    } else {
      outcome = std::move(full);
    }
  }
  if (outcome.ok()) {
    body = std::move(outcome->body);
    payload = std::move(outcome->payload);
    detail::put_before(body, payload.size());
  } else {
    flags = detail::flag_error;
    ByteWriter out(body);
    write_status(out, outcome.status());
  }
  const std::lock_guard lock(mutex_);
  if (!closed_.ok() || requests_.erase(request) == 0) return {};
  send_message(FrameType::reply, request, flags, std::move(body), std::move(payload));
  return check_answers();
}

}  // namespace dflow::net
