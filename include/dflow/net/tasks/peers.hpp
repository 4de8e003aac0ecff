#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/net/inspect/task_log.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/visit.hpp>
#include <dflow/net/tasks/step_table.hpp>
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

/// The connections of this task with others, by the others' names: two with each, so that what is small and urgent
/// never stands behind a large tensor. Each is opened when it is first needed, by whoever needs it, and serves both
/// sides; one that is lost is opened anew when it is needed again.
///
/// What was asked over a connection that its opener has lost may still be under way when the opener is back. So a
/// connection that is accepted takes the place of those that the same client has opened for the same channel, and a
/// task that has been started anew that of all which were its earlier start's: they end, and nothing that came over
/// them is begun any more. An earlier start of one of `addresses`, which has a lower incarnation, is not let in.
///
/// Thread safety: safe. Completions run on I/O threads, and inside a call where there is nothing to wait for.
class Peers final : public TensorSource, public std::enable_shared_from_this<Peers> {
 public:
  /// What this task does with what others ask of it, and with their going.
  class Service {
   public:
    Service() = default;
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    virtual ~Service();
    /// What is thrown is the reply. `client` is who the connection is with that it came over.
    virtual void on_request(const TaskIdentity& client, const Visit& visit, Incoming& request, Responder& respond) = 0;
    /// The visit is over: told once. The client may be back meanwhile, for another one.
    virtual void on_gone(const Visit& visit, const Status& why) = 0;
    /// A control connection with that task is gone, before `on_gone`: what it has pushed over it to what had begun by
    /// `mark` may be lost. Another connection may be in use meanwhile.
    virtual void on_lost(const TaskIdentity& peer, std::uint64_t mark, const Status& why);
    /// Told to `on_lost`: what begins from now on does so after the connection was lost. Called with a lock held.
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
    /// Who has lost what was pushed to it is told so, if it can be reached within this time.
    Duration recall_timeout = std::chrono::minutes(10);
    /// Tensors of more bytes are asked for on the data connection, and those whose size is not known before, strings
    /// among them.
    std::size_t small_tensor_bytes = 64 << 10;
    /// Accepted connections whose handshake is under way. With one more the oldest is let go, of those that have said
    /// nothing if there are any.
    std::size_t max_handshakes = 256;
    /// Accepted connections of processes that are no tasks of `addresses`. More are refused with ResourceExhausted.
    std::size_t max_client_connections = 512;
    std::shared_ptr<TaskLog> log = nullptr;  ///< of tensors, if given
  };
  using Done = UniqueFunction<void(Status, std::shared_ptr<Connection>)>;

  explicit Peers(Options options) : options_(std::move(options)) {}
  ~Peers() override;

  /// Before the first connection. It must live until `close` has returned and all connections have ended.
  void set_service(std::shared_ptr<Service> service) { service_ = std::move(service); }

  /// A connection that somebody opened: begins its handshake.
  void accept(std::unique_ptr<Stream> stream);
  /// An open connection, else null.
  std::shared_ptr<Connection> find(const std::string& task, Channel channel) const;
  /// An open connection, or one that is opened now: at one attempt, or if `until` lies ahead at as many as fit in until
  /// then, the last of which begins no earlier than `until`. Errors, given to `done`: Unavailable naming the task, also
  /// for one that has no address and has not connected; Unauthenticated, at once, if it has
  /// another secret, or a certificate that does not hold. A task that is not
  /// where its address says is reached by what it has opened, whatever for.
  void connect(const std::string& task, Channel channel, Clock::time_point until, Done done);
  /// A request on that connection. Errors: those of `connect` and of `Connection::call`, with the task.
  void call(const std::string& task, Channel channel, Call call, CallDone done);

  void receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const RecvArgs& args,
               CancellationToken cancellation, Rendezvous::RecvDone done) override;
  void push(const std::string& task, std::uint64_t step, const RendezvousKey& key, const AnyTensor& tensor,
            bool is_dead, UniqueFunction<void(Status)> failed) override;

  /// Ends all connections, those that make their handshake too; no new ones are made.
  void close(const Status& why);
  /// Where tensors are noted; null if they are not.
  TaskLog* task_log() const noexcept { return options_.log.get(); }
  /// Where that task can be connected to; empty for one that has no address here.
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

  /// With the mutex held: an open connection, else the end.
  std::multimap<Place, Open>::iterator find_open(const Place& place);
  /// With the mutex held: why it is not let in, if it is not.
  Status refusal_of(const Connection& connection);
  /// With the mutex held; false for an earlier start than one that has been here.
  bool note_start(const TaskIdentity& peer);
  /// With the mutex held: those that end when this one begins, with why.
  std::vector<std::pair<Open, Status>> superseded_by(const Connection& connection) const;
  void end_handshake(std::uint64_t number);
  /// With the mutex held, when the connection is open: it is part of its client's visit, which it may begin.
  void visit(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link);
  void limit_handshakes(std::uint64_t number, const std::shared_ptr<Connection>& newest);
  void recall(const TaskIdentity& peer, std::vector<std::uint64_t> steps, const Status& why);
  /// Until when what begins now may take, for the sake of the one who waits longest, and `timeout` at the longest.
  Clock::time_point end_of_attempt(const Connecting& connecting, Duration timeout) const;
  void attempt(const Place& place, Duration backoff) noexcept;
  void try_attempt(const Place& place, Duration backoff);
  void introduce(const Place& place, std::unique_ptr<Stream> stream, std::function<void(const Status&)> failed);
  void fail_attempt(const Place& place, const Status& status, Duration backoff) noexcept;
  void attempt_later(const Place& place, const Status& status, Duration backoff);
  /// Tells those who wait until `due` at the longest; the earliest time that others wait until, else never.
  Clock::time_point opened(const Place& place, Status status, std::shared_ptr<Connection> connection,
                           Clock::time_point due);
  void add(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Link>& link);
  void remove(Connection& connection, const Status& why);
  Duration jittered(Duration pause);

  const Options options_;
  std::shared_ptr<Service> service_;
  mutable std::mutex mutex_;
  Status closed_;
  std::multimap<Place, Open> open_;
  std::map<Place, Connecting> connecting_;
  std::map<std::string, std::uint64_t> latest_starts_;                              ///< incarnations, by task
  std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<Visit>> visits_;  ///< that go on, by client and start
  std::uint64_t next_visit_ = 1;
  std::uint64_t next_handshake_ = 1;
  std::map<std::uint64_t, std::weak_ptr<Connection>> handshakes_;  ///< of accepted connections, oldest first
  std::map<std::uint64_t, std::weak_ptr<Connection>> openings_;    ///< handshakes of connections to others
};

}  // namespace dflow::net
