#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/visit.hpp>
#include <dflow/net/tasks/backoff.hpp>
#include <dflow/net/transport/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {
/// Errors: InvalidArgument, naming the task, for text that is no address. Also if strangers may be at the other end of
/// a connection at this address of the task, and neither a secret keeps them out nor the cluster is insecure.
void check_exposure(const Transport& transport, const std::string& task, const std::string& address,
                    const ConnectionOptions& options);
}  // namespace detail

/// The connections of this task with other tasks, by their names. There are two with each task, so that a small and
/// urgent message never waits behind a large tensor. Each is opened when either side first needs it, and serves both
/// sides. A lost connection is opened anew when it is needed again.
///
/// Requests over a connection that its opener has lost may still be under way when the opener is back. For this
/// reason an accepted connection takes the place of the connections that the same client has opened for the same
/// channel. A task that has been started anew takes the place of all connections of its earlier start. The replaced
/// connections end, and no request that came over them is begun any more. An earlier start of one of `addresses`,
/// which has a lower incarnation, is not let in.
///
/// Thread safety: safe. Completions run on I/O threads, and inside a call where there is nothing to wait for.
class Peers final : public std::enable_shared_from_this<Peers> {
 public:
  /// Serves the requests of other tasks, and learns of the end of their visits.
  class Service {
   public:
    Service() = default;
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    virtual ~Service();
    /// A thrown error becomes the reply. `client` is the peer of the connection that the request came over.
    virtual void on_request(const TaskIdentity& client, const Visit& visit, Incoming& request, Responder& respond) = 0;
    /// A connection has been opened, by either side.
    virtual void on_open(const std::shared_ptr<Connection>& connection);
    /// The visit is over: told once. The client may be back meanwhile, for another one.
    virtual void on_gone(const Visit& visit, const Status& why) = 0;
    /// A control connection with that task is gone, before `on_gone`. Tensors that the task has pushed over it to
    /// steps that had begun by `mark` may be lost. Another connection may be in use meanwhile.
    virtual void on_lost(const TaskIdentity& peer, std::uint64_t mark, const Status& why);
    /// The `marks` of posts that this task may not have read, over a connection that has ended.
    virtual void on_unread(const std::string& task, std::vector<std::uint64_t> marks, const Status& why);
    /// The number given to `on_lost`: steps that begin from now on do so after the connection was lost. Called with a
    /// lock held.
    virtual std::uint64_t mark() const noexcept;
  };

  struct Options {
    std::shared_ptr<Transport> transport;
    ConnectionOptions connection;                  ///< `self`, secret, clock, limits
    std::map<std::string, std::string> addresses;  ///< of the tasks that can be connected to
    Duration connect_timeout = std::chrono::seconds(5);
    /// Pauses between attempts of `connect` grow from the first to the second, each shortened by up to half at random.
    Duration min_backoff = std::chrono::milliseconds(20);
    Duration max_backoff = std::chrono::seconds(1);
    /// The number of accepted connections with a handshake under way. At one more, the oldest is let go, if possible
    /// one that has sent nothing.
    std::size_t max_handshakes = 256;
    /// Accepted connections of processes that are no tasks of `addresses`. More are refused with ResourceExhausted.
    std::size_t max_client_connections = 512;
    /// An incarnation whose time is further ahead of this machine's calendar says nothing about which start is the
    /// later one. A calendar that is set to another time zone is wrong by hours.
    Duration max_calendar_lead = std::chrono::hours(24);
    /// Reads long messages, and the requests that come behind them; null: I/O threads do, and others wait.
    std::shared_ptr<ThreadPool> pool = nullptr;
    /// Requests of one connection may wait for the pool with so many bytes. The next are refused.
    std::size_t max_waiting_bytes = std::size_t{64} << 20;
  };
  using Done = UniqueFunction<void(Status, std::shared_ptr<Connection>)>;

  /// Errors: InvalidArgument, naming the task, for an address that nobody can listen at, and the errors of
  /// `check_exposure`. Other errors of `Transport::check_can_connect`, naming the task.
  explicit Peers(Options options);
  ~Peers();

  /// Before the first connection. It must live until `close` has returned and all connections have ended.
  void set_service(std::shared_ptr<Service> service) { service_ = std::move(service); }

  /// A connection that somebody opened: begins its handshake.
  void accept(std::unique_ptr<Stream> stream);
  /// An open connection, else null.
  std::shared_ptr<Connection> find(const std::string& task, Channel channel) const;
  /// Gives an open connection, or opens one now, with one attempt. If `until` lies ahead, it makes as many attempts
  /// as fit in until then, and the last attempt begins no earlier than `until`. Errors, given to `done`: Unavailable
  /// naming the task, also for a task that has no address and has not connected; Unauthenticated, at once, if it has
  /// another secret, or an invalid certificate. A task that is not at its address is reached by the connection that
  /// it has opened, on any channel.
  void connect(const std::string& task, Channel channel, Clock::time_point until, Done done);
  /// A request on that connection. Errors: the errors of `connect` and of `Connection::call`, with the task.
  void call(const std::string& task, Channel channel, Call call, CallDone done);

  /// Ends all connections, also during their handshake; no new ones are made.
  void close(const Status& why);
  /// The pauses between attempts of `connect`.
  Backoff backoff() const noexcept { return {options_.min_backoff, options_.max_backoff}; }
  /// The address of that task; empty for a task that has no address here.
  std::string address_of(const std::string& task) const;
  /// `line()` is a line of the task's log.
  template <class F>
  void log(const F& line) const noexcept {
    if (options_.connection.log) detail::tell([&] { options_.connection.log(line()); });
  }
  /// All that are open, for the metrics.
  std::vector<std::shared_ptr<Connection>> connections() const;

 private:
  class Link;
  using Place = std::pair<std::string, Channel>;
  struct Waiting {
    Done done;
    Clock::time_point until;
  };
  struct Connecting {
    std::vector<Waiting> waiting;
  };
  struct Open {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<Link> link;
  };

  /// The starts of one task that have been here.
  struct Starts {
    std::uint64_t latest = 0;             ///< the last one that was let in
    std::uint64_t least = 0;              ///< those with lower incarnations were before
    std::vector<std::uint64_t> replaced;  ///< which do not come back
  };

  /// With the mutex held: an open connection, else the end.
  std::multimap<Place, Open>::iterator find_open(const Place& place);
  /// With the mutex held: why it is not let in, if it is not.
  Status refusal_of(const Connection& connection);
  /// With the mutex held. Errors: Aborted if a later start of the peer has been here.
  Status note_start(const TaskIdentity& peer);
  std::chrono::seconds seconds_ahead(std::uint64_t incarnation) const;
  void warn_of_calendar(const TaskIdentity& peer) const;
  /// With the mutex held: the connections that end when this one begins, and the reasons.
  std::vector<std::pair<Open, Status>> superseded_by(const Connection& connection) const;
  void end_handshake(std::uint64_t number);
  /// With the mutex held, when the connection is open: it is part of its client's visit, which it may begin.
  void visit(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link);
  void limit_handshakes(std::uint64_t number, const std::shared_ptr<Connection>& newest);
  /// The end of an attempt that begins now: the time of the caller that waits longest, and `timeout` at the longest.
  Clock::time_point end_of_attempt(const Connecting& connecting, Duration timeout) const;
  void attempt(const Place& place, Backoff backoff) noexcept;
  void try_attempt(const Place& place, Backoff backoff);
  void introduce(const Place& place, std::unique_ptr<Stream> stream, std::function<void(const Status&)> failed);
  void fail_attempt(const Place& place, const Status& status, Backoff backoff) noexcept;
  void attempt_later(const Place& place, const Status& status, Backoff backoff);
  /// Tells the callers that wait until `due` at the longest. Returns the earliest time that other callers wait until,
  /// else never.
  Clock::time_point opened(const Place& place, Status status, std::shared_ptr<Connection> connection,
                           Clock::time_point due);
  void add(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link);
  void remove(Connection& connection, const Status& why);

  const Options options_;
  std::shared_ptr<Service> service_;
  mutable std::mutex mutex_;
  Status closed_;
  std::multimap<Place, Open> open_;
  std::map<Place, Connecting> connecting_;
  std::map<std::string, Starts> starts_;                                            ///< by task
  std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<Visit>> visits_;  ///< that go on, by client and start
  std::uint64_t next_visit_ = 1;
  std::uint64_t next_handshake_ = 1;
  std::map<std::uint64_t, std::weak_ptr<Connection>> handshakes_;  ///< of accepted connections, oldest first
  std::map<std::uint64_t, std::weak_ptr<Connection>> openings_;    ///< handshakes of connections to others
};

}  // namespace dflow::net
