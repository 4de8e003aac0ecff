#pragma once

#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/net/transport/strand.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <utility>

namespace dflow::net {

namespace detail {

/// Errors of `check` name the task whose address it is.
template <class Check>
auto check_address_of(const std::string& task, const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("the address of ", task, ": ")));
  }
}

void check_exposure(const Transport& transport, const std::string& task, const std::string& address,
                    const ConnectionOptions& options) {
  const bool is_exposed = check_address_of(task, [&] { return transport.is_exposed(address); });
  if (!options.secret.empty() || options.is_insecure || !is_exposed) return;
  throw_error(Status::invalid_argument(str_cat(
      "'", address, "' of ", task, " is open to strangers, users of this machine among them, and the cluster ",
      "has no secret. Either give all its tasks one secret (--secret_file, DFLOW_SECRET_FILE, ",
      "ClusterSpec::set_secret), or use Unix sockets (unix:///path), which let in this user alone, or TLS with ",
      "certificates of both sides. Or let everybody in (--insecure, ClusterSpec::set_insecure)")));
}

}  // namespace detail

Peers::Service::~Service() = default;
void Peers::Service::on_open(const std::shared_ptr<Connection>&) {}
void Peers::Service::on_lost(const TaskIdentity&, std::uint64_t, const Status&) {}
void Peers::Service::on_unread(const std::string&, std::vector<std::uint64_t>, const Status&) {}
std::uint64_t Peers::Service::mark() const noexcept { return 0; }

Peers::Peers(Options options) : options_(std::move(options)) {
  for (const auto& [task, address] : options_.addresses) {
    detail::check_address_of(task, [&, &at = address] { options_.transport->check_can_connect(at); });
    detail::check_exposure(*options_.transport, task, address, options_.connection);
  }
}

Peers::~Peers() = default;

/// A connection calls a Link. The link outlives the objects that it calls, so it checks whether they still exist.
class Peers::Link final : public Connection::Handler, public std::enable_shared_from_this<Link> {
 public:
  explicit Link(const std::shared_ptr<Peers>& peers) : peers_(peers), service_(peers->service_) {
    const Options& options = peers->options_;
    if (options.pool != nullptr) strand_ = std::make_shared<Strand>(options.pool);
    max_waiting_bytes_ = options.max_waiting_bytes;
  }

  /// A long request goes to the pool. Requests keep their order: the next ones follow it as long as it waits.
  void on_request(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) override {
    const bool is_long = request.body.size() > detail::max_io_thread_bytes;
    if (strand_ == nullptr || (!is_long && waiting_bytes_.load(std::memory_order_acquire) == 0)) {
      return serve(connection, std::move(request), std::move(respond));
    }
    const std::size_t bytes = sizeof(Incoming) + request.body.size() + request.payload.size();
    if (waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > max_waiting_bytes_) {
      waiting_bytes_.fetch_sub(bytes, std::memory_order_release);
      const Status full =
          Status::resource_exhausted(str_cat("requests of ", max_waiting_bytes_, " bytes wait already"));
      return respond.is_due() ? respond(full) : connection->close(full);
    }
    strand_->post([self = shared_from_this(), connection, bytes, request = std::move(request),
                   respond = std::move(respond)]() mutable {
      // Nobody waits for the reply any more. A post counts as read.
      if (connection->is_open() || !respond.is_due()) {
        self->serve(connection, std::move(request), std::move(respond));
      }
      self->waiting_bytes_.fetch_sub(bytes, std::memory_order_release);
    });
  }

  void serve(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) {
    const std::shared_ptr<Peers> keep = peers_.lock();
    const std::shared_ptr<const Visit> visit = this->visit();
    if (keep == nullptr || service_ == nullptr || visit == nullptr) {
      return respond(Status::unavailable("this task has ended"));
    }
    try {
      service_->on_request(connection->peer(), *visit, request, respond);
    } catch (...) {
      const Status why = status_of_current_exception();
      if (respond.is_due()) return respond(why);
      // A post has no reply: its sender, and callers that wait for its content, learn of the error by the
      // connection's end.
      connection->close(why);
    }
  }

  void on_closed(Connection& connection, const Status& why) override {
    if (const std::shared_ptr<Peers> peers = peers_.lock()) peers->remove(connection, why);
  }

  void join(std::shared_ptr<const Visit> visit) {
    const dflow::detail::SpinGuard guard(lock_);
    visit_.swap(visit);
  }
  /// Null before it has joined one.
  std::shared_ptr<const Visit> visit() const {
    const dflow::detail::SpinGuard guard(lock_);
    return visit_;
  }

  /// The service's mark when the connection was lost, or another one took its place. Guarded by the peers' mutex.
  std::optional<std::uint64_t> lost_at;

 private:
  const std::weak_ptr<Peers> peers_;
  const std::shared_ptr<Service> service_;
  std::shared_ptr<Strand> strand_;  ///< of requests that wait for the pool; null without one
  std::size_t max_waiting_bytes_ = 0;
  std::atomic<std::size_t> waiting_bytes_{0};
  mutable dflow::detail::SpinLock lock_;
  std::shared_ptr<const Visit> visit_;
};

// ---- connections ----

void Peers::accept(std::unique_ptr<Stream> stream) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    number = next_handshake_++;
    handshakes_.try_emplace(number);
  }
  const auto link = std::make_shared<Link>(shared_from_this());
  const auto opened = [weak = weak_from_this(), link, number](const Status& status,
                                                              const std::shared_ptr<Connection>& connection) {
    const std::shared_ptr<Peers> self = weak.lock();
    if (self != nullptr) self->end_handshake(number);
    if (!status.ok()) return;  // the handshake has logged why
    if (self != nullptr) return self->add(connection, link);
    connection->close(Status::unavailable("this task has ended"));
  };
  limit_handshakes(number, Connection::open(std::move(stream), Role::acceptor, options_.connection, link, opened));
}

void Peers::end_handshake(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  handshakes_.erase(number);
}

void Peers::limit_handshakes(std::uint64_t number, const std::shared_ptr<Connection>& newest) {
  std::shared_ptr<Connection> let_go;
  Status closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = handshakes_.find(number);
    if (found == handshakes_.end()) return;  // it has ended meanwhile
    found->second = newest;
    closed = closed_;
    if (closed.ok() && handshakes_.size() <= options_.max_handshakes) return;
    auto chosen = std::find_if(handshakes_.begin(), handshakes_.end(), [&](const auto& entry) {
      const std::shared_ptr<Connection> connection = entry.second.lock();
      return connection != newest && (connection == nullptr || !connection->is_introduced());
    });
    if (chosen == handshakes_.end()) chosen = handshakes_.begin();
    let_go = chosen->second.lock();
    handshakes_.erase(chosen);
  }
  if (!closed.ok()) return newest->close(closed);
  if (let_go == nullptr) return;
  let_go->close(Status::unavailable(
      str_cat("more than ", options_.max_handshakes, " that have connected have not proved yet who they are")));
}

// ---- replaced connections ----

Status Peers::refusal_of(const Connection& connection) {
  const TaskIdentity& peer = connection.peer();
  if (Status refused = note_start(peer); !refused.ok()) return refused;
  if (connection.role() == Role::connector || options_.addresses.contains(peer.task)) return {};
  // A connection that this one replaces does not count.
  const auto num_clients = std::count_if(open_.begin(), open_.end(), [&](const auto& entry) {
    const Connection& other = *entry.second.connection;
    return other.role() == Role::acceptor && !options_.addresses.contains(entry.first.first) &&
           (entry.first != Place{peer.task, connection.channel()} || other.peer().incarnation != peer.incarnation);
  });
  if (static_cast<std::size_t>(num_clients) < options_.max_client_connections) return {};
  return Status::resource_exhausted(str_cat("more than ", options_.max_client_connections, " connections of clients"));
}

/// Numbers tell which of two starts is the later one. A number from the future does not: it would lock later starts out
/// until the calendar gets there. Of such a start the one that comes later is the later one.
Status Peers::note_start(const TaskIdentity& peer) {
  constexpr std::size_t most_replaced = 64;
  if (!options_.addresses.contains(peer.task)) return {};
  Starts& starts = starts_[peer.task];
  if (peer.incarnation == starts.latest) return {};
  const bool is_from_future = seconds_ahead(peer.incarnation) > options_.max_calendar_lead;
  if (std::ranges::count(starts.replaced, peer.incarnation) != 0 ||
      (!is_from_future && peer.incarnation < starts.least)) {
    const auto ahead = seconds_ahead(starts.latest);
    return Status::aborted(
        str_cat(peer.task, " has been started anew since this one was started, by the calendars of the machines",
                ahead.count() <= 0 ? "" : str_cat(": the other start lies ", ahead.count(), " s in the future")));
  }
  if (starts.latest != 0) starts.replaced.push_back(starts.latest);
  if (starts.replaced.size() > most_replaced) starts.replaced.erase(starts.replaced.begin());
  starts.latest = peer.incarnation;
  if (!is_from_future) starts.least = peer.incarnation;
  return {};
}

std::chrono::seconds Peers::seconds_ahead(std::uint64_t incarnation) const {
  const Duration ahead = time_until_start(incarnation, options_.connection.clock->wall_now());
  return std::chrono::duration_cast<std::chrono::seconds>(ahead);
}

/// A client that connects again has lost the connection that it had opened before. The other side may still have a
/// connection that this side has opened: two that open at the same time have both.
std::vector<std::pair<Peers::Open, Status>> Peers::superseded_by(const Connection& connection) const {
  const TaskIdentity& peer = connection.peer();
  const bool is_task = options_.addresses.contains(peer.task);
  std::vector<std::pair<Open, Status>> superseded;
  for (const Channel channel : {Channel::control, Channel::data}) {
    const auto [begin, end] = open_.equal_range({peer.task, channel});
    for (auto found = begin; found != end; ++found) {
      const std::shared_ptr<Connection>& other = found->second.connection;
      if (other->peer().incarnation != peer.incarnation) {
        if (is_task)
          superseded.emplace_back(found->second, Status::aborted(str_cat(peer.task, " has been started anew")));
      } else if (channel == connection.channel() && other->role() == Role::acceptor &&
                 connection.role() == Role::acceptor) {
        superseded.emplace_back(found->second, Status::unavailable(str_cat(peer.task, " has connected again")));
      }
    }
  }
  return superseded;
}

// ---- open connections ----

/// Connections that its client has opened before, and kept open when its last visit ended, are part of the new visit.
void Peers::visit(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link) {
  const TaskIdentity& peer = connection->peer();
  const auto known = visits_.find({peer.task, peer.incarnation});
  std::shared_ptr<Visit> visit = known == visits_.end() ? nullptr : known->second;
  if (visit == nullptr) {
    visit = std::make_shared<Visit>(peer, next_visit_++);
    visits_.emplace(std::pair(peer.task, peer.incarnation), visit);
    for (const Channel channel : {Channel::control, Channel::data}) {
      const auto [begin, end] = open_.equal_range({peer.task, channel});
      for (auto found = begin; found != end; ++found) {
        if (found->second.connection->peer().incarnation == peer.incarnation) found->second.link->join(visit);
      }
    }
  }
  link->join(visit);
}

void Peers::warn_of_calendar(const TaskIdentity& peer) const {
  const auto ahead = seconds_ahead(peer.incarnation);
  if (ahead <= options_.max_calendar_lead || !options_.addresses.contains(peer.task)) return;
  log([&] {
    return str_cat(peer.task, " was started ", ahead.count(),
                   " s in the future, by this machine's calendar: one of the two calendars is wrong");
  });
}

void Peers::add(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link) {
  const TaskIdentity& peer = connection->peer();
  Status closed, refused;
  std::vector<std::pair<Open, Status>> superseded;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (closed.ok()) closed = refused = refusal_of(*connection);
    if (closed.ok() && connection->is_open()) {
      superseded = superseded_by(*connection);
      for (const auto& [open, why] : superseded) {
        const bool is_same_start = open.connection->peer().incarnation == peer.incarnation;
        if (is_same_start && service_ != nullptr) open.link->lost_at = service_->mark();
      }
      const auto added = open_.emplace(Place{peer.task, connection->channel()}, Open{connection, link});
      try {
        visit(connection, link);
      } catch (...) {
        open_.erase(added);
        throw;
      }
    }
  }
  for (const auto& [open, why] : superseded) open.connection->close(why);
  if (!refused.ok()) {
    connection->log_of_peer(str_cat("no connection with incarnation ", peer.incarnation, ": ", refused.to_string()));
  }
  if (closed.ok() && connection->channel() == Channel::control) warn_of_calendar(peer);
  if (!closed.ok()) connection->close(closed);
  if (closed.ok() && service_ != nullptr) detail::tell([&] { service_->on_open(connection); });
  // It may have ended before it was known here.
  if (!connection->is_open()) remove(*connection, Status::unavailable("the connection has ended"));
}

namespace detail {

/// The line about the end of a connection: always of a fault, and of an orderly end or a loss if the peer `is_missed`.
/// Else empty.
std::string line_of_end(const std::string& peer, const Status& why, bool is_farewell, bool is_missed) {
  const Code code = why.code();
  const bool is_end = is_farewell || code == Code::unavailable || code == Code::cancelled || code == Code::aborted;
  if (!is_end) return str_cat("the connection with ", peer, " ends: ", code_name(code), ": ", why.message());
  if (!is_missed) return {};
  if (why.message().find(peer) != std::string_view::npos) return std::string(why.message());
  return str_cat(peer, is_farewell ? " has ended the connection: " : ", the connection has ended: ", why.message());
}

}  // namespace detail

/// If there is no memory for one action, all other actions are done: a caller that is not told would wait for ever.
void Peers::remove(Connection& connection, const Status& why) {
  const TaskIdentity& peer = connection.peer();
  const auto is_of_peer = [&](const auto& place, const Connection& other) {
    return place.first == peer.task && other.peer().incarnation == peer.incarnation;
  };
  Open removed;
  std::shared_ptr<Visit> over;
  std::uint64_t mark = 0;
  bool is_closed = false;
  // A client that has opened no control connection has its sessions all the same.
  bool is_gone = true;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [place, open] : open_) {
      if (open.connection.get() == &connection) {
        removed = open;
      } else if (is_of_peer(place, *open.connection) &&
                 (place.second == Channel::control || connection.channel() == Channel::data)) {
        is_gone = false;
      }
    }
    if (removed.connection == nullptr) return;
    is_closed = !closed_.ok();
    std::erase_if(open_, [&](const auto& entry) { return entry.second.connection == removed.connection; });
    // From here on another connection may be opened and used.
    if (service_ != nullptr) mark = removed.link->lost_at.value_or(service_->mark());
    const auto visit = std::find_if(visits_.begin(), visits_.end(), [&](const auto& entry) {
      return entry.first.first == peer.task && entry.first.second == peer.incarnation;
    });
    if (is_gone && visit != visits_.end()) {
      over = std::move(visit->second);
      visits_.erase(visit);
      over->end();
    }
  }
  detail::tell([&] {
    const bool is_task = options_.addresses.contains(peer.task);
    const bool is_missed = is_task && connection.channel() == Channel::control;
    const std::string line = detail::line_of_end(peer.task, why, connection.is_farewell(), is_missed);
    if (is_closed || line.empty()) return;
    is_task ? log([&] { return std::string_view(line); }) : connection.log_of_peer(line);
  });
  if (connection.channel() == Channel::control && service_ != nullptr) {
    detail::tell([&] { service_->on_lost(peer, mark, why); });
  }
  if (std::vector<std::uint64_t> marks; service_ != nullptr) {
    detail::tell([&] {
      if (marks = connection.unread_posts(); !marks.empty()) service_->on_unread(peer.task, std::move(marks), why);
    });
  }
  if (over != nullptr && service_ != nullptr) detail::tell([&] { service_->on_gone(*over, why); });
}

std::shared_ptr<Connection> Peers::find(const std::string& task, Channel channel) const {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = open_.equal_range({task, channel});
  // The newest: after a restart of a task, the new connections come after the old ones.
  for (auto found = end; found != begin;) {
    if ((--found)->second.connection->is_open()) return found->second.connection;
  }
  return nullptr;
}

std::multimap<Peers::Place, Peers::Open>::iterator Peers::find_open(const Place& place) {
  const auto [begin, end] = open_.equal_range(place);
  for (auto found = end; found != begin;) {
    if ((--found)->second.connection->is_open()) return found;
  }
  return open_.end();
}

void Peers::connect(const std::string& task, Channel channel, Clock::time_point until, Done done) {
  if (std::shared_ptr<Connection> open = find(task, channel)) return done(Status(), std::move(open));
  // A client without an address is reached by the connection that it has opened, on any channel.
  if (!options_.addresses.contains(task)) {
    const Channel other = channel == Channel::control ? Channel::data : Channel::control;
    if (std::shared_ptr<Connection> open = find(task, other)) return done(Status(), std::move(open));
  }
  const Place place{task, channel};
  Status refused;
  bool is_first = false;
  std::shared_ptr<Connection> open;
  {
    const std::lock_guard lock(mutex_);
    // Another attempt may have come to its end since: a second connection would take the place of its.
    if (const auto found = find_open(place); found != open_.end()) {
      open = found->second.connection;
    } else if (!closed_.ok()) {
      refused = closed_;
    } else if (!options_.addresses.contains(task)) {
      refused = Status::unavailable(str_cat(task, " is not connected, and has no address here")).with_task(task);
    } else {
      std::vector<Waiting>& waiting = connecting_[place].waiting;
      if (waiting.size() == waiting.capacity()) waiting.reserve(2 * waiting.size() + 1);
      is_first = waiting.empty();  // else an attempt is under way
      waiting.push_back({std::exchange(done, nullptr), until});
    }
  }
  if (open != nullptr) return done(Status(), std::move(open));
  if (!refused.ok()) return done(std::move(refused), nullptr);
  if (is_first) attempt(place, backoff());
}

Clock::time_point Peers::end_of_attempt(const Connecting& connecting, Duration timeout) const {
  const Clock& clock = *options_.connection.clock;
  const Clock::time_point limit = clock.after(timeout);
  Clock::time_point end = clock.after(options_.min_backoff);
  for (const Waiting& waiting : connecting.waiting) {
    // An only attempt has all the time that one may take.
    end = std::max(end, waiting.until == Clock::time_point{} ? limit : waiting.until);
  }
  return std::min(limit, end);
}

/// The waiting callers are told in any case: nobody else makes another attempt as long as one is under way.
void Peers::attempt(const Place& place, Backoff backoff) noexcept {
  try {
    try_attempt(place, backoff);
  } catch (...) {
    opened(place, status_of_current_exception(), nullptr, Clock::never);
  }
}

void Peers::try_attempt(const Place& place, Backoff backoff) {
  Clock::time_point end;
  {
    const std::lock_guard lock(mutex_);
    const auto found = connecting_.find(place);
    if (found == connecting_.end()) return;  // all have been told that the task ends
    end = end_of_attempt(found->second, options_.connect_timeout);
  }
  auto stream = std::make_shared<std::unique_ptr<Stream>>();
  options_.transport->connect(options_.addresses.at(place.first), end, *stream,
                              [self = shared_from_this(), stream, place, backoff](const Status& status) {
                                const auto failed = [self, place, backoff](const Status& why) {
                                  self->fail_attempt(place, why, backoff);
                                };
                                if (!status.ok()) return failed(status);
                                try {
                                  self->introduce(place, std::move(*stream), failed);
                                } catch (...) {
                                  failed(status_of_current_exception());
                                }
                              });
}

/// The handshake of an attempt.
void Peers::introduce(const Place& place, std::unique_ptr<Stream> stream, std::function<void(const Status&)> failed) {
  constexpr Duration least = std::chrono::milliseconds(500);  // others may have the processors
  ConnectionOptions options = options_.connection;
  options.channel = place.second;
  options.expected_peer = place.first;
  const auto link = std::make_shared<Link>(shared_from_this());
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = connecting_.find(place);
    if (found == connecting_.end()) return;  // all have been told that the task ends
    const Clock::time_point end = end_of_attempt(found->second, options.handshake_timeout);
    options.handshake_timeout =
        std::min(options.handshake_timeout, std::max(least, end - options_.connection.clock->now()));
    number = next_handshake_++;
    openings_.try_emplace(number);
  }
  const auto end_opening = [weak = weak_from_this(), number] {
    const std::shared_ptr<Peers> self = weak.lock();
    if (self == nullptr) return;
    const std::lock_guard lock(self->mutex_);
    self->openings_.erase(number);
  };
  std::shared_ptr<Connection> begun;
  try {
    begun = Connection::open(std::move(stream), Role::connector, std::move(options), link,
                             [self = shared_from_this(), place, link, failed, end_opening](
                                 const Status& opened, std::shared_ptr<Connection> connection) {
                               end_opening();
                               if (!opened.ok()) return failed(opened);
                               try {
                                 self->add(connection, link);
                               } catch (...) {
                                 failed(status_of_current_exception());
                                 throw;
                               }
                               self->opened(place, {}, std::move(connection), Clock::never);
                             });
  } catch (...) {
    end_opening();
    throw;
  }
  Status closed;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (const auto found = openings_.find(number); found != openings_.end()) found->second = begun;
  }
  if (!closed.ok()) begun->close(closed);
}

void Peers::fail_attempt(const Place& place, const Status& status, Backoff backoff) noexcept {
  try {
    attempt_later(place, status, backoff);
  } catch (...) {
    opened(place, status_of_current_exception(), nullptr, Clock::never);
  }
}

/// Callers whose time is over are told. For the others there is another attempt, no later than the next caller's time
/// is over.
void Peers::attempt_later(const Place& place, const Status& status, Backoff backoff) {
  Clock& clock = *options_.connection.clock;
  const bool may_pass = status.code() == Code::unavailable || status.code() == Code::deadline_exceeded;
  // A task with another secret has it at the next attempt too.
  const Code code = status.code() == Code::unauthenticated ? status.code() : Code::unavailable;
  const Status told(
      code, str_cat(place.first, " cannot be reached at ", options_.addresses.at(place.first), ": ", status.message()));
  const Clock::time_point next =
      opened(place, told.with_task(place.first), nullptr, may_pass ? clock.now() : Clock::never);
  if (next == Clock::never) return;
  const Clock::time_point pause_ends = clock.after(backoff.next(options_.connection.random()));
  clock.schedule_at(std::min(pause_ends, next),
                    [self = shared_from_this(), place, backoff] { self->attempt(place, backoff); });
}

Clock::time_point Peers::opened(const Place& place, Status status, std::shared_ptr<Connection> connection,
                                Clock::time_point due) {
  std::vector<Waiting> told;
  Clock::time_point next = Clock::never;
  {
    const std::lock_guard lock(mutex_);
    const auto found = connecting_.find(place);
    if (found == connecting_.end()) return next;
    std::vector<Waiting>& waiting = found->second.waiting;
    told.swap(waiting);
    const auto left =
        std::stable_partition(told.begin(), told.end(), [&](const Waiting& each) { return each.until <= due; });
    detail::tell([&] {  // without memory to wait on nobody does
      waiting.reserve(static_cast<std::size_t>(told.end() - left));
      for (auto each = left; each != told.end(); ++each) {
        next = std::min(next, each->until);
        waiting.push_back(std::move(*each));
      }
      told.erase(left, told.end());
    });
    if (waiting.empty()) connecting_.erase(found);
    const Channel other = place.second == Channel::control ? Channel::data : Channel::control;
    if (const auto open = find_open({place.first, other}); connection == nullptr && open != open_.end()) {
      status = {};
      connection = open->second.connection;
    }
  }
  for (Waiting& each : told) detail::tell([&] { each.done(status, connection); });
  return next;
}

void Peers::call(const std::string& task, Channel channel, Call call, CallDone done) {
  std::shared_ptr<Connection> open = find(task, channel);
  // A client that is no task can be asked only over its own connection.
  if (open == nullptr && !options_.addresses.contains(task)) open = find(task, Channel::control);
  if (open != nullptr) return open->call(std::move(call), std::move(done));
  connect(task, channel, {},
          [call = std::move(call), done = std::move(done)](Status status,
                                                           const std::shared_ptr<Connection>& connection) mutable {
            if (!status.ok()) return done(std::move(status), {});
            connection->call(std::move(call), std::move(done));
          });
}

void Peers::close(const Status& why) {
  std::vector<std::shared_ptr<Connection>> all;
  std::map<Place, Connecting> connecting;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = why;
    for (const auto& [place, open] : open_) all.push_back(open.connection);
    for (const auto& [number, weak] : handshakes_) {
      if (std::shared_ptr<Connection> connection = weak.lock()) all.push_back(std::move(connection));
    }
    for (const auto& [number, weak] : openings_) {
      if (std::shared_ptr<Connection> connection = weak.lock()) all.push_back(std::move(connection));
    }
    connecting.swap(connecting_);
  }
  for (const std::shared_ptr<Connection>& connection : all) connection->close(why);
  for (auto& [place, attempts] : connecting) {
    for (Waiting& waiting : attempts.waiting) waiting.done(why, nullptr);
  }
}

std::string Peers::address_of(const std::string& task) const {
  const auto found = options_.addresses.find(task);
  return found == options_.addresses.end() ? std::string() : found->second;
}

std::vector<std::shared_ptr<Connection>> Peers::connections() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [place, open] : open_) all.push_back(open.connection);
  return all;
}

}  // namespace dflow::net
