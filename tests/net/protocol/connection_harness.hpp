// Connections in memory, and a peer that a test controls.
#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../transport/transport_contract.hpp"

namespace dflow::net::test {

inline constexpr std::chrono::seconds patience{60};

/// Lines of a log. Nothing here checks: threads may use it.
class Lines {
 public:
  std::function<void(std::string_view)> log() {
    return [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    };
  }
  std::size_t count(std::string_view text) {
    const std::lock_guard lock(mutex_);
    std::size_t found = 0;
    for (const std::string& line : lines_) found += line.find(text) != std::string::npos ? 1 : 0;
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Records the calls of a connection to its owner. Requests go to `answer`; without one they come back unchanged.
class Owner final : public Connection::Handler {
 public:
  using Answer = std::function<void(const std::shared_ptr<Connection>&, Incoming, Responder)>;
  explicit Owner(Answer answer = nullptr) : answer_(std::move(answer)) {}

  void on_request(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) override {
    ++num_requests;
    if (answer_) return answer_(connection, std::move(request), std::move(respond));
    Outgoing reply{std::move(request.body), {}};
    const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(request.payload));
    if (!bytes->empty()) reply.payload = {{std::span(*bytes)}, bytes};
    respond(std::move(reply));
  }
  void on_closed(Connection& connection, const Status& why) override {
    if (also_closed) also_closed(connection);
    if (++num_closed == 1) closed_.set_value(why);
  }
  /// Waits for the end and returns its status; call it once.
  Status closed() {
    auto future = closed_.get_future();
    return future.wait_for(patience) == std::future_status::ready ? future.get()
                                                                  : Status::internal("it has not been closed");
  }

  std::atomic<int> num_requests{0};
  std::atomic<int> num_closed{0};
  std::function<void(Connection&)> also_closed;

 private:
  const Answer answer_;
  std::promise<Status> closed_;
};

/// The outcome of `Connection::open`.
class Opening {
 public:
  Connection::Opened done() {
    return [state = state_](Status status, std::shared_ptr<Connection> connection) {
      state->set_value({std::move(status), std::move(connection)});
    };
  }
  std::pair<Status, std::shared_ptr<Connection>> wait() {
    auto future = state_->get_future();
    if (future.wait_for(patience) != std::future_status::ready) return {Status::internal("it has not opened"), nullptr};
    return future.get();
  }

 private:
  using Result = std::pair<Status, std::shared_ptr<Connection>>;
  std::shared_ptr<std::promise<Result>> state_ = std::make_shared<std::promise<Result>>();
};

/// The outcome of `Connection::call`.
class Answered {
 public:
  CallDone done() {
    return [state = state_](Status status, std::string body) {
      state->set_value({std::move(status), std::move(body)});
    };
  }
  std::pair<Status, std::string> wait() {
    auto future = state_->get_future();
    if (future.wait_for(patience) != std::future_status::ready) return {Status::internal("no answer"), {}};
    return future.get();
  }

 private:
  using Result = std::pair<Status, std::string>;
  std::shared_ptr<std::promise<Result>> state_ = std::make_shared<std::promise<Result>>();
};

inline std::uint64_t random_number() {
  static std::mutex mutex;
  static std::mt19937_64 random(7);
  const std::lock_guard lock(mutex);
  return random();
}

inline ConnectionOptions options_of(const std::string& task, std::shared_ptr<Clock> clock = nullptr) {
  ConnectionOptions options;
  options.self = {"cluster", task, 11, 22};
  options.secret = "the secret";
  options.clock = clock != nullptr ? std::move(clock) : std::make_shared<RealClock>();
  options.random = random_number;
  return options;
}

/// Streams in memory.
struct Wire {
  std::shared_ptr<ThreadPool> pool = std::make_shared<WorkStealingPool>(3);
  MemoryTransport transport{pool};
  std::unique_ptr<Listener> listener = transport.listen("there");

  Ends ends() { return connected(transport, *listener); }
};

/// Two connections, of task "near" and task "far".
struct Pair : Wire {
  explicit Pair(Owner::Answer near_answer = nullptr, Owner::Answer far_answer = nullptr,
                const std::function<void(ConnectionOptions&)>& change = nullptr)
      : near_owner(std::make_shared<Owner>(std::move(near_answer))),
        far_owner(std::make_shared<Owner>(std::move(far_answer))) {
    Ends both = ends();
    ConnectionOptions near_options = options_of("near"), far_options = options_of("far");
    if (change) {
      change(near_options);
      change(far_options);
    }
    Opening near_opening, far_opening;
    Connection::open(std::move(both.far), Role::acceptor, std::move(far_options), far_owner, far_opening.done());
    Connection::open(std::move(both.near), Role::connector, std::move(near_options), near_owner, near_opening.done());
    near = near_opening.wait().second;
    far = far_opening.wait().second;
    REQUIRE(near != nullptr);
    REQUIRE(far != nullptr);
  }
  ~Pair() {
    near->close(Status::cancelled("the test is over"));
    far->close(Status::cancelled("the test is over"));
  }

  std::shared_ptr<Owner> near_owner, far_owner;
  std::shared_ptr<Connection> near, far;
};

struct Frame {
  FrameHeader header;
  std::string payload;
};

inline std::string frame_bytes(FrameType type, std::uint64_t request, std::string_view payload,
                               std::uint16_t flags = 0) {
  FrameHeader header{.type = type, .flags = flags, .request = request};
  const std::span<const std::byte> part = bytes_of(payload);
  describe_payload(header, {&part, 1});
  const FrameHeaderBytes bytes = to_bytes(header);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(payload);
}

inline std::string u64_bytes(std::uint64_t value) {
  std::string bytes;
  ByteWriter(bytes).u64(value);
  return bytes;
}

inline std::string request_bytes(std::uint64_t request, std::string_view body, std::uint64_t payload = 0,
                                 std::uint16_t flags = 0) {
  std::string framed;
  ByteWriter out(framed);
  out.u16(3);
  out.u64(payload);
  framed += body;
  return frame_bytes(FrameType::request, request, framed, flags);
}

inline std::string reply_bytes(std::uint64_t request, std::string_view body, std::uint64_t payload = 0) {
  return frame_bytes(FrameType::reply, request, u64_bytes(payload).append(body));
}

/// A connector that is not a Connection, and the acceptor at the other end.
struct Raw : Wire {
  explicit Raw(ConnectionOptions options = options_of("far"), std::shared_ptr<Owner> its_owner = nullptr,
               std::uint64_t window_bytes = 1 << 20)
      : owner(its_owner != nullptr ? std::move(its_owner) : std::make_shared<Owner>()), random(options.random) {
    Ends both = ends();
    stream = std::move(both.near);
    Handshake::Options mine;
    mine.self = options.self;
    mine.self.task = "near";
    mine.secret = options.secret;
    mine.window_bytes = window_bytes;
    mine.random = random;
    handshake = std::make_unique<Handshake>(mine);
    Connection::open(std::move(both.far), Role::acceptor, std::move(options), owner, opening.done());
  }

  Status send(std::string_view bytes) { return write(*stream, {bytes}); }
  /// The next frame; none if the stream has ended.
  bool read_frame(Frame& frame) {
    const std::string header = read(*stream, FrameHeader::size);
    if (header.size() < FrameHeader::size) return false;
    frame.header = read_frame_header(bytes_of(header).first<FrameHeader::size>(), ~std::uint64_t{0});
    frame.payload = read(*stream, frame.header.length);
    return frame.payload.size() == frame.header.length;
  }
  /// The next frame of this type; other frames are passed over. If there is none, an empty frame of type hello.
  Frame next(FrameType type) {
    Frame frame;
    while (read_frame(frame)) {
      if (frame.header.type == type) return frame;
    }
    return {{.type = FrameType::hello}, {}};
  }
  /// The status in the goodbye frame.
  Status goodbye() {
    const Frame frame = next(FrameType::goodbye);
    if (frame.header.type != FrameType::goodbye) return {};
    ByteReader in(frame.payload);
    return read_status(in);
  }
  /// The hello and the proof, ready to be sent.
  std::string introduction() {
    const Frame hello = next(FrameType::hello);
    const Sha256Digest proof = handshake->take_hello(hello.payload);
    return frame_bytes(FrameType::hello, 0, handshake->hello()) +
           frame_bytes(FrameType::proof, 0, {reinterpret_cast<const char*>(proof.data()), proof.size()});
  }
  std::shared_ptr<Connection> shake() {
    const std::string bytes = introduction();
    REQUIRE(send(bytes).ok());
    handshake->take_proof(next(FrameType::proof).payload);
    auto [status, opened] = opening.wait();
    REQUIRE(status.ok());
    return opened;
  }
  /// When this returns, the peer has read everything that was sent before.
  Frame ping(std::uint64_t number = 77) {
    REQUIRE(send(frame_bytes(FrameType::ping, number, "")).ok());
    return next(FrameType::pong);
  }

  std::shared_ptr<Owner> owner;
  std::function<std::uint64_t()> random;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Handshake> handshake;
  Opening opening;
};

/// Blocks until the condition holds, or patience ends.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return condition();
}

/// Blocks until only the caller holds the object.
template <class T>
bool comes_to_be_alone(const std::shared_ptr<T>& token) {
  return comes_true([&] { return token.use_count() == 1; });
}

/// Options that make a connection hold `token` as long as the connection is there.
inline ConnectionOptions holding(ConnectionOptions options, std::shared_ptr<int> token) {
  options.log = [token = std::move(token)](std::string_view) {};
  return options;
}

}  // namespace dflow::net::test
