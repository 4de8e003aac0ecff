#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/net/protocol/byte_budget.hpp>
#include <dflow/net/protocol/frame_stream.hpp>
#include <dflow/net/protocol/handshake.hpp>
#include <dflow/net/protocol/unread_posts.hpp>
#include <dflow/net/transport/transport.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {
/// Calls `f`, and drops its exception: other callbacks must be told too.
template <class F>
void tell(const F& f) noexcept {
  try {
    f();
  } catch (...) {  // a callback has nobody to throw to
  }
}
}  // namespace detail

/// The memory for the bytes that follow a message.
struct PayloadMemory {
  std::span<std::byte> bytes;
  /// Keeps them as long as the connection may write there, also when the call was given up.
  std::shared_ptr<void> owner;
};

/// A message to send: a small body, and bytes that are sent from where they are.
struct Outgoing {
  std::string body;
  Payload payload;
};

/// A request to the other side.
struct Call {
  std::uint16_t method = 0;
  Outgoing message;
  Clock::time_point deadline = Clock::never;
  CancellationToken cancellation = {};
  /// Says where the reply's payload goes, when its body has come: called on an I/O thread, at most once, and never
  /// while or after the call's end is told. Null: a payload is an error.
  UniqueFunction<StatusOr<PayloadMemory>(std::string_view body, std::uint64_t size)> place_payload = nullptr;
};

/// Called exactly once, from any thread, when the reply is complete with its payload, or with the error.
using CallDone = UniqueFunction<void(Status status, std::string body)>;

/// A request of the other side.
struct Incoming {
  std::uint16_t method = 0;
  std::string body;
  std::vector<std::byte> payload;
  /// Cancelled when nobody waits for the reply any more.
  CancellationToken cancellation;
  /// The client's, for memory that is kept beyond the reply; body and payload are charged until then.
  std::shared_ptr<ByteBudget> budget = nullptr;
};

class Connection;

/// Answers one request, from any thread, at any time. The first answer counts; dropped without one it says Internal.
///
/// Thread safety: one thread at a time.
class Responder {
 public:
  Responder() = default;
  Responder(std::weak_ptr<Connection> connection, std::uint64_t request) noexcept
      : connection_(std::move(connection)), request_(request), is_due_(true) {}
  Responder(Responder&& other) noexcept
      : connection_(std::move(other.connection_)),
        request_(other.request_),
        is_due_(std::exchange(other.is_due_, false)) {}
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  /// False if nobody waits for an answer: of a post, and after the first.
  bool is_due() const noexcept { return is_due_; }
  void operator()(StatusOr<Outgoing> reply);

 private:
  std::weak_ptr<Connection> connection_;
  std::uint64_t request_ = 0;
  bool is_due_ = false;
};

/// Bytes that went over a task's connections since it began.
///
/// Thread safety: safe.
struct Traffic {
  std::atomic<std::uint64_t> received_bytes{0};
  std::atomic<std::uint64_t> sent_bytes{0};  ///< given to the transport
};

/// How two tasks are connected.
struct ConnectionOptions {
  TaskIdentity self;
  /// The secret that both sides must know; empty: every peer that can connect is let in, but for processes that the
  /// transport knows to run for another user.
  std::string secret;
  /// Without a secret, lets the processes of other users in too.
  bool is_insecure = false;
  Channel channel = Channel::control;   ///< of a connector
  std::string expected_peer;            ///< the task that a connector wants; empty: any task
  std::uint64_t tasks_fingerprint = 0;  ///< that a connector sends: `Hello::tasks_fingerprint`
  std::shared_ptr<Clock> clock;
  std::function<std::uint64_t()> random;                ///< numbers of 64 random bits
  std::function<void(std::string_view)> log = nullptr;  ///< gets a line for each peer that is refused or misbehaves
  /// Gets those lines in place of `log`, with the address of the peer that causes them, so that it can limit them.
  std::function<void(std::string_view line, std::string_view peer)> log_of_peer = nullptr;
  std::uint64_t max_body_bytes = std::uint64_t{16} << 20;
  std::uint64_t max_request_payload_bytes = std::uint64_t{4} << 30;
  std::size_t max_calls = 65536;  ///< under way, each way
  /// Posts with a mark that the peer has not shown to have read; it is asked to at each `max / 64`. As many more wait.
  std::size_t max_unread_posts = 16384;
  /// Bytes of payloads that may be on their way to this side.
  std::uint64_t window_bytes = std::uint64_t{8} << 20;
  std::uint64_t chunk_bytes = std::uint64_t{256} << 10;
  /// Bytes of replies and pongs that wait for a peer that does not read them; with more it is given up.
  std::uint64_t max_answer_bytes = std::uint64_t{64} << 20;
  /// Bytes of requests and posts that wait for a peer that does not read them; with more the next are refused.
  std::uint64_t max_request_bytes = std::uint64_t{256} << 20;
  /// A silent peer is asked for a sign of life, and given up when nothing has come for so long.
  Duration heartbeat_interval = std::chrono::seconds(2);
  Duration heartbeat_timeout = std::chrono::seconds(10);
  /// A peer is given up, with all that waits for it, in two cases: a payload waits for this long without credit from
  /// the peer, or the peer does not read one write for this long. By default a link of 4 KB/s carries in that time
  /// all bytes that a peer gives credit for at once.
  Duration stall_timeout = std::chrono::minutes(10);
  Duration handshake_timeout = std::chrono::seconds(10);
  std::shared_ptr<Traffic> traffic = nullptr;  ///< counts, if given
  /// Gives the budget of a peer, for its requests until they are answered, and for payloads of replies until they are
  /// sent; null: nothing is counted. A request or reply over the budget is answered by ResourceExhausted.
  std::function<std::shared_ptr<ByteBudget>(const TaskIdentity& peer)> budget = nullptr;
};

/// Requests and replies between two tasks over one stream, both ways alike. docs/wire-format.md says what goes over it.
///
/// - Requests and replies overtake the payloads of other messages. Payloads go in chunks, by turns, as far as the
///   receiver has given credit. A peer that does not read costs this side only references to the bytes to send.
/// - A payload is sent from its own memory and received into the memory that the receiver wants it in.
/// - When the stream ends, is silent for too long or carries nonsense, the connection ends. All calls end with the
///   error (Unavailable, DataLoss, InvalidArgument, OutOfRange, ResourceExhausted), which names the task, and
///   requests of the peer are cancelled. The peer is told why if it can be reached.
/// - Until the peer has proved its identity, only its hello, its proof and its goodbye are read, and each only up to
///   16 KiB.
///
/// Thread safety: all functions may be called from any thread. Callbacks come from I/O threads and from threads that
/// call, cancel or keep the time, never with a lock held. They must be short and must not block.
class Connection final : public std::enable_shared_from_this<Connection>, private FrameSink {
 public:
  /// Receives the peer's requests and the end of the connection. Requests come one after the other.
  class Handler {
   public:
    Handler() = default;
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;
    virtual ~Handler();
    virtual void on_request(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) = 0;
    /// Once, if it had been open.
    virtual void on_closed(Connection& connection, const Status& why) = 0;
  };
  using Opened = UniqueFunction<void(Status, std::shared_ptr<Connection>)>;

  /// Makes the handshake. `done` is called once, with the connection or with an error: an error of `Handshake`;
  /// DeadlineExceeded; Unavailable. The returned connection may be closed before that.
  static std::shared_ptr<Connection> open(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options,
                                          std::shared_ptr<Handler> handler, Opened done);

  Connection(std::unique_ptr<Stream> stream, Role role, ConnectionOptions options, std::shared_ptr<Handler> handler,
             Opened done);
  ~Connection();

  /// Errors, given to `done`: the peer's; DeadlineExceeded, the token's; Unavailable for a connection that has ended;
  /// InvalidArgument for a body over `max_body_bytes`. ResourceExhausted for more than `max_calls`, if
  /// `max_request_bytes` wait, and for want of memory.
  void call(Call call, CallDone done) noexcept;
  /// A request that is not answered; with a mark it is remembered until the peer has shown that it has read it. If
  /// `max_unread_posts` marks are remembered, it waits here for the peer to read others, and is left out if
  /// `is_wanted`, if given, says false by then. `is_wanted` takes no lock.
  /// Errors: as of `call`; ResourceExhausted if as many posts wait here already, and all are wanted.
  Status post(std::uint16_t method, std::string body, std::optional<std::uint64_t> mark = std::nullopt,
              UniqueFunction<bool()> is_wanted = nullptr);
  /// For callers that count the calls by which they tell the peer to end something, until it answers: the more there
  /// are, the further the peer is behind.
  std::atomic<std::size_t>& num_cancels() noexcept { return num_cancels_; }
  /// The marks of posts that the peer may not have read, also of those that wait here; all of them when the connection
  /// has ended.
  std::vector<std::uint64_t> unread_posts();
  /// Tells the peer why, and ends it; a peer that does not listen for a `heartbeat_interval` is left without a word.
  /// For a reason that is more than Unavailable, the stream stays open until the peer has read the goodbye, no longer
  /// than that time: bytes that meet a closed stream may take the goodbye away from the peer. The first call counts.
  void close(const Status& why);

  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }
  /// The other side has sent its identity; its proof shows whether the identity is true.
  bool is_introduced() const noexcept { return has_hello_.load(std::memory_order_acquire); }
  /// The other side has said that it ends the connection.
  bool is_farewell() const noexcept { return is_farewell_.load(std::memory_order_acquire); }
  /// A line of the log that the peer causes.
  void log_of_peer(std::string_view line) const;
  /// Is cancelled when the connection has ended, with the status that calls end with, after them.
  CancellationToken end() const { return end_.token(); }
  /// Precondition of the next four functions: the connection has been open.
  const TaskIdentity& peer() const noexcept { return handshake_.peer().self; }
  Channel channel() const noexcept { return channel_; }
  /// `Hello::tasks_fingerprint` of the peer.
  std::uint64_t peer_tasks() const noexcept { return handshake_.peer().tasks_fingerprint; }
  /// The role of this side.
  Role role() const noexcept { return handshake_.peer().role == Role::connector ? Role::acceptor : Role::connector; }

 private:
  friend class Responder;
  struct Pending;
  struct Inbound;
  /// A request of the peer that is not answered yet.
  struct Asked {
    CancellationSource source;
    ByteCharge charge;
  };
  /// A post that waits for the peer to read others.
  struct HeldPost {
    std::string body;
    std::uint64_t mark;
    UniqueFunction<bool()> is_wanted;  ///< null: always
  };

  void start();
  void read_next();
  void on_read(const Status& status);
  template <class F>
  void guarded(const F& f) noexcept;
  void flush() noexcept;
  void write_queued();
  void give_up_writing() noexcept;
  void send(FrameType type, std::uint64_t request, std::string body, std::uint16_t flags = 0);
  void reply(std::uint64_t request, StatusOr<Outgoing> outcome) noexcept;
  Status answer(std::uint64_t request, StatusOr<Outgoing> outcome);
  void refuse(std::uint64_t request, const Status& status);
  void send_message(FrameType type, std::uint64_t request, std::uint16_t flags, std::string body, Payload payload);
  void give_up(std::uint64_t request, Status status);
  Status begin_call(Call& call, CallDone& done, std::uint64_t& request);
  void finish_call(std::uint64_t request, Status status, std::string body);
  void fail(Status status, bool tell_peer) noexcept;
  void say_goodbye(const Status& why);
  void linger(const Status& read);
  void finish_write(const Status& status);
  Status check_answers() const;
  Status check_requests() const;
  Status check_stall();
  Duration until_next_look() const;
  void keep_alive() noexcept;
  void look_after();
  void schedule_keep_alive();
  std::string peer_name() const;
  Status lost(const Status& status) const;

  // FrameSink
  void on_frame(const FrameHeader& header, std::string payload) override;
  std::span<std::byte> on_chunk(const FrameHeader& header) override;
  void on_chunk_end(const FrameHeader& header) override;

  void take_hello(std::string_view bytes);
  void take_proof(std::string_view bytes);
  void take_request(const FrameHeader& header, std::string body);
  void take_reply(const FrameHeader& header, std::string body);
  void take_cancel(const FrameHeader& header);
  void place_reply(const std::shared_ptr<Pending>& call, Inbound& inbound, std::string_view body);
  void deliver_request(std::uint64_t request, Incoming incoming, ByteCharge charge);
  void deliver_post(std::uint16_t method, std::string body);
  void send_post(std::string body, std::uint64_t mark);
  void forget_posts(std::uint64_t request);
  void complete(std::uint64_t key);

  const std::unique_ptr<Stream> stream_;
  const ConnectionOptions options_;
  const Channel own_channel_;
  const std::shared_ptr<Handler> handler_;
  std::atomic<bool> is_open_{false};
  std::atomic<std::size_t> num_cancels_{0};
  CancellationSource end_;
  std::atomic<Clock::rep> last_heard_{0};  ///< of the clock, in its ticks
  std::atomic<bool> has_hello_{false};     ///< the peer's claimed identity may be read

  // Used only by the thread that reads.
  Handshake handshake_;
  Channel channel_;
  std::shared_ptr<ByteBudget> budget_;  ///< of the peer; set before the connection is open
  std::atomic<bool> is_farewell_{false};
  FrameReader reader_;
  std::size_t read_count_ = 0;
  std::map<std::uint64_t, Inbound> inbound_;  ///< payloads under way, by request, which the peer chooses, and direction
  std::uint64_t window_left_;
  std::uint64_t taken_ = 0;  ///< bytes of chunks that no credit was given back for

  std::mutex mutex_;  ///< guards the members below
  Opened opened_;
  Status closed_;
  FrameWriter writer_;
  bool is_writing_ = false;
  Clock::time_point began_writing_{};
  bool is_answering_ = false;  ///< read frames are being handled: frames of that time are sent afterwards
  std::shared_ptr<FrameWriter::Batch> idle_batch_;  ///< its memory is used again
  bool has_sent_proof_ = false;
  std::uint64_t next_request_ = 1;
  UnreadPosts posts_;
  std::deque<HeldPost> held_posts_;  ///< until the peer has read others
  std::uint64_t held_bytes_ = 0;     ///< their bodies
  std::size_t posts_since_ping_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Pending>> calls_;
  std::map<std::uint64_t, Asked> requests_;  ///< of the peer, which numbers them, not answered yet
  Clock::time_point could_send_{};           ///< when there last was credit, or nothing that waited for it
  TimerId timer_{};
  bool is_lingering_ = false;       ///< the peer is to read the goodbye, and ends the stream
  std::vector<std::byte> dropped_;  ///< bytes that come meanwhile; used only by the thread that reads
};

}  // namespace dflow::net
