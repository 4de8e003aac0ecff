// Bytes into an established connection: as they are, and as frames with right checksums, so that the code behind the
// checksums is reached. One byte gives the type and flags of a frame, one its request, one its length.
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/connection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace dflow;
using namespace dflow::net;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A stream that hands over the given bytes when `deliver` is called.
struct Pipe {
  std::span<std::byte> into;
  std::size_t* count = nullptr;
  Completion reader;
  std::string written;
  bool is_closed = false;

  void deliver(std::string_view bytes) {
    while (!bytes.empty() && reader && !is_closed) {
      const std::size_t size = std::min(bytes.size(), into.size());
      std::memcpy(into.data(), bytes.data(), size);
      bytes.remove_prefix(size);
      *count = size;
      std::exchange(reader, nullptr)({});
    }
  }
};

class PipeStream final : public Stream {
 public:
  explicit PipeStream(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) override {
    require(!into.empty());
    pipe_->into = into;
    pipe_->count = &count;
    pipe_->reader = std::move(done);
  }
  void write(std::vector<std::span<const std::byte>>, Completion done) override { done({}); }
  std::size_t try_write(std::span<const std::span<const std::byte>> parts) noexcept override {
    std::size_t size = 0;
    for (const std::span<const std::byte> part : parts) {
      pipe_->written.append(reinterpret_cast<const char*>(part.data()), part.size());
      size += part.size();
    }
    return size;
  }
  void close() noexcept override { pipe_->is_closed = true; }
  std::string peer() const override { return "the pipe"; }

 private:
  const std::shared_ptr<Pipe> pipe_;
};

/// Answers at once, later, or never.
class Server final : public Connection::Handler {
 public:
  void on_request(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) override {
    require(connection->is_open());
    if (request.method % 4 == 0) waiting.push_back(std::move(respond));
    if (request.method % 4 == 1) respond(Status::aborted("refused"));
    if (request.method % 4 == 2) {
      auto owner = std::make_shared<const std::vector<std::byte>>(std::move(request.payload));
      Outgoing reply{std::move(request.body), {{std::span(*owner)}, owner}};
      respond(std::move(reply));
    }
    if (request.method % 16 == 15) connection->close(Status::aborted("closed by a request"));
  }
  void on_closed(Connection&, const Status& why) override {
    require(!why.ok());
    ++num_closed;
  }
  std::vector<Responder> waiting;
  int num_closed = 0;
};

std::string framed(FrameType type, std::uint16_t flags, std::uint64_t request, std::string_view payload) {
  FrameHeader header{.type = type, .flags = flags, .request = request};
  const auto part = std::as_bytes(std::span(payload.data(), payload.size()));
  describe_payload(header, {&part, 1});
  const FrameHeaderBytes bytes = to_bytes(header);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(payload);
}

std::uint64_t next_number() {
  static std::uint64_t number = 0;
  return ++number;
}

void converse(std::string_view bytes) {
  const auto clock = std::make_shared<VirtualClock>();
  const auto pipe = std::make_shared<Pipe>();
  const auto server = std::make_shared<Server>();
  ConnectionOptions options;
  options.self = {"c", "server", 1, 2};
  options.secret = "s";
  options.clock = clock;
  options.random = next_number;
  options.max_body_bytes = 1 << 12;
  options.max_request_payload_bytes = 1 << 12;
  options.max_calls = 8;
  options.window_bytes = 1 << 10;
  options.chunk_bytes = 1 << 6;
  options.max_answer_bytes = 1 << 14;
  Handshake::Options mine;
  mine.self = {"c", "client", 3, 2};
  mine.secret = "s";
  mine.window_bytes = 1 << 10;
  mine.random = next_number;
  Handshake handshake(mine);
  std::shared_ptr<Connection> connection;
  Connection::open(std::make_unique<PipeStream>(pipe), Role::acceptor, options, server,
                   [&](const Status& status, std::shared_ptr<Connection> opened) {
                     require(status.ok());
                     connection = std::move(opened);
                   });
  const Sha256Digest proof = handshake.take_hello(std::string_view(pipe->written).substr(FrameHeader::size));
  pipe->deliver(framed(FrameType::hello, 0, 0, handshake.hello()) +
                framed(FrameType::proof, 0, 0, {reinterpret_cast<const char*>(proof.data()), proof.size()}));
  require(connection != nullptr);
  // Two calls of the connection's own; their replies may come. One has a place for bytes, the other has none.
  int num_done = 0;
  const auto landing = std::make_shared<std::string>();
  Call call;
  call.place_payload = [&](std::string_view, std::uint64_t size) -> StatusOr<PayloadMemory> {
    require(num_done <= 1);
    if (size > 4096) return Status::out_of_range("too large");
    landing->resize(size);
    return PayloadMemory{std::as_writable_bytes(std::span(landing->data(), landing->size())), landing};
  };
  connection->call(std::move(call), [&](const Status&, const std::string&) { ++num_done; });
  connection->call({}, [&](const Status&, const std::string&) { ++num_done; });
  pipe->deliver(bytes);
  clock->advance(std::chrono::seconds(3));
  if (!server->waiting.empty()) server->waiting.front()(Outgoing{"late", {}});
  if (!connection->is_open()) require(server->num_closed == 1);
  connection->close(Status::cancelled("done"));
  clock->advance(options.heartbeat_interval);  // the peer has read the goodbye, or never will
  require(num_done == 2 && server->num_closed == 1 && pipe->is_closed);
  server->waiting.clear();
  pipe->reader = nullptr;  // lets go of the connection
  require(connection.use_count() == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  if (size != 0) bytes.assign(reinterpret_cast<const char*>(data), size);
  converse(bytes);
  std::string frames;
  for (std::size_t at = 0; at + 3 <= bytes.size();) {
    const auto number = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const std::size_t length = std::min<std::size_t>(number(2), bytes.size() - at - 3);
    frames += framed(static_cast<FrameType>(number(0) & 15), number(0) >> 4, number(1) & 7,
                     std::string_view(bytes).substr(at + 3, length));
    at += 3 + length;
  }
  converse(frames);
  return 0;
}
