// The costs of a connection, whatever the peer does: credit, silence, unread answers, abandoned handshakes.
#include <dflow/net/protocol/connection.hpp>

#include "catch.hpp"
#include "connection_harness.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using std::chrono::seconds;
using test::Raw;

namespace {

constexpr std::uint16_t of_reply = 1;

/// Answers each request with as many bytes as its body says.
std::shared_ptr<test::Owner> giver() {
  return std::make_shared<test::Owner>([](const auto&, const Incoming& request, Responder respond) {
    auto owner = std::make_shared<const std::string>(std::stoul(request.body), 'x');
    Outgoing reply;
    reply.payload.parts.push_back(test::bytes_of(*owner));
    reply.payload.owner = owner;
    respond(std::move(reply));
  });
}

/// Reads chunks until so many bytes of them have come.
std::size_t read_chunks(Raw& raw, std::size_t bytes) {
  std::size_t have = 0;
  while (have < bytes) {
    const test::Frame chunk = raw.next(FrameType::chunk);
    if (chunk.header.type != FrameType::chunk) break;
    have += chunk.payload.size();
  }
  return have;
}

/// True if the next two pongs come with no chunk between: there was then no chunk to send when the second ping came.
bool is_quiet(Raw& raw) {
  test::Frame frame;
  if (!raw.send(test::frame_bytes(FrameType::ping, 1, "")).ok()) return false;
  while (raw.read_frame(frame) && frame.header.type != FrameType::pong) {
    if (frame.header.type == FrameType::chunk) return false;
  }
  if (!raw.send(test::frame_bytes(FrameType::ping, 2, "")).ok()) return false;
  return raw.read_frame(frame) && frame.header.type == FrameType::pong;
}

}  // namespace

TEST_CASE("a small reply overtakes a large payload", "[net]") {
  Raw raw(test::options_of("far"), giver(), 64 << 20);
  raw.shake();
  constexpr std::size_t large = 16 << 20;
  REQUIRE(raw.send(test::request_bytes(1, std::to_string(large)) + test::request_bytes(2, "0")).ok());
  std::size_t before = 0;
  test::Frame frame;
  while (raw.read_frame(frame) && !(frame.header.type == FrameType::reply && frame.header.request == 2)) {
    if (frame.header.type == FrameType::chunk) before += frame.payload.size();
  }
  CHECK(frame.header.request == 2);
  CHECK(before < large);
  CHECK(read_chunks(raw, large - before) == large - before);
}

TEST_CASE("chunks are on their way as far as the receiver has given credit", "[net]") {
  Raw raw(test::options_of("far"), giver(), 100'000);
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "300000")).ok());
  CHECK(read_chunks(raw, 100'000) == 100'000);
  CHECK(is_quiet(raw));
  REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(50'000))).ok());
  CHECK(read_chunks(raw, 50'000) == 50'000);
  CHECK(is_quiet(raw));
  for (int i = 0; i < 15; ++i) {
    REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(10'000))).ok());
    CHECK(read_chunks(raw, 10'000) == 10'000);
  }
  CHECK(raw.ping().header.request == 77);
}

TEST_CASE("a peer that sends more than it has credit for, or gives more than its window, is given up", "[net]") {
  auto options = test::options_of("far");
  options.window_bytes = 1000;
  Raw raw(options, nullptr, 1000);
  raw.shake();
  std::string text;
  SECTION("a chunk longer than the window") {
    REQUIRE(raw.send(test::request_bytes(1, "", 5000)).ok());
    static_cast<void>(raw.send(test::frame_bytes(FrameType::chunk, 1, std::string(1001, 'x'))));
    text = "a frame of 1001 bytes, more than 1000";
  }
  SECTION("a chunk longer than the rest of the window") {
    // Credit for so few bytes does not come back yet.
    REQUIRE(raw.send(test::request_bytes(1, "", 5000)).ok());
    REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, 1, std::string(200, 'x'))).ok());
    static_cast<void>(raw.send(test::frame_bytes(FrameType::chunk, 1, std::string(801, 'x'))));
    text = "the peer sends more than it has credit for";
  }
  SECTION("credit beyond the window") {
    static_cast<void>(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(1))));
    text = "more credit than its window";
  }
  SECTION("credit that wraps around") {
    static_cast<void>(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(~std::uint64_t{0}))));
    text = "more credit than its window";
  }
  const Status told = raw.goodbye();
  INFO(told.to_string());
  CHECK(mentions(told, text));
}

TEST_CASE("a peer may use all of its credit", "[net]") {
  auto options = test::options_of("far");
  options.window_bytes = 1000;
  Raw raw(options, nullptr, 1000);
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "body", 1000)).ok());
  for (const std::size_t size : {200u, 800u}) {
    REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, 1, std::string(size, 'x'))).ok());
  }
  CHECK(raw.next(FrameType::reply).payload == test::u64_bytes(1000) + "body");
  CHECK(read_chunks(raw, 1000) == 1000);
  REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(1000))).ok());
  CHECK(raw.ping().header.request == 77);
}

TEST_CASE("credit comes back as chunks are taken", "[net]") {
  auto options = test::options_of("far");
  options.window_bytes = 1000;
  Raw raw(options);
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "body", 5000)).ok());
  std::uint64_t credit = 1000, sent = 0;
  while (sent < 5000) {
    const std::uint64_t size = std::min<std::uint64_t>(credit, std::min<std::uint64_t>(600, 5000 - sent));
    REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, 1, std::string(size, 'x'))).ok());
    sent += size;
    credit -= size;
    if (credit < 600 && sent < 5000) {
      const test::Frame frame = raw.next(FrameType::credit);
      ByteReader in(frame.payload);
      credit += in.u64();
    }
  }
  const test::Frame reply = raw.next(FrameType::reply);
  CHECK(reply.payload == test::u64_bytes(5000) + "body");
}

TEST_CASE("a call that is given up takes back what of it has not been sent", "[net]") {
  Raw raw(test::options_of("far"), nullptr, 10'000);
  const auto connection = raw.shake();
  auto payload = std::make_shared<std::string>(1'000'000, 'x');
  CancellationSource source;
  test::Answered answered;
  Call call;
  call.message.payload = {{test::bytes_of(*payload)}, payload};
  call.cancellation = source.token();
  connection->call(std::move(call), answered.done());
  const test::Frame request = raw.next(FrameType::request);
  CHECK(read_chunks(raw, 10'000) == 10'000);
  source.cancel(Status::aborted("enough"));
  CHECK(answered.wait().first.code() == Code::aborted);
  CHECK(raw.next(FrameType::cancel).header.request == request.header.request);
  REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(10'000))).ok());
  CHECK(is_quiet(raw));
  CHECK(test::comes_to_be_alone(payload));
}

TEST_CASE("the rest of a request that was given up is not waited for", "[net]") {
  Raw raw;
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "first", 100) + test::frame_bytes(FrameType::chunk, 1, std::string(50, 'x')) +
                   test::frame_bytes(FrameType::cancel, 1, "") + test::request_bytes(1, "second", 10) +
                   test::frame_bytes(FrameType::chunk, 1, std::string(10, 'y')))
              .ok());
  CHECK(raw.next(FrameType::reply).payload == test::u64_bytes(10) + "second");
  CHECK(raw.owner->num_requests == 1);
}

TEST_CASE("the rest of a reply that nobody waits for is not sent", "[net]") {
  Raw raw(test::options_of("far"), giver(), 1000);
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "5000")).ok());
  CHECK(read_chunks(raw, 1000) == 1000);
  REQUIRE(raw.send(test::frame_bytes(FrameType::cancel, 1, "")).ok());
  const test::Frame cancel = raw.next(FrameType::cancel);
  CHECK(cancel.header.request == 1);
  CHECK(cancel.header.flags == of_reply);
  REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(1000))).ok());
  CHECK(is_quiet(raw));
}

TEST_CASE("a peer that says that the rest of a reply does not come ends that call", "[net]") {
  Raw raw;
  const auto connection = raw.shake();
  const auto bytes = std::make_shared<std::string>(100, ' ');
  test::Answered answered;
  Call call;
  call.place_payload = [bytes](std::string_view, std::uint64_t) -> StatusOr<PayloadMemory> {
    return PayloadMemory{std::as_writable_bytes(std::span(bytes->data(), bytes->size())), bytes};
  };
  connection->call(std::move(call), answered.done());
  const std::uint64_t number = raw.next(FrameType::request).header.request;
  REQUIRE(raw.send(test::reply_bytes(number, "", 100) +
                   test::frame_bytes(FrameType::chunk, number, std::string(50, 'x'), of_reply) +
                   test::frame_bytes(FrameType::cancel, number, "", of_reply))
              .ok());
  CHECK(answered.wait().first.code() == Code::cancelled);
  CHECK(test::comes_to_be_alone(bytes));
  CHECK(raw.ping().header.request == 77);
}

// ---- silence ----

TEST_CASE("a silent peer is asked for a sign of life, and given up when none comes", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  Raw raw(test::options_of("far", clock));
  raw.shake();
  for (int i = 0; i < 3; ++i) {  // one that answers stays
    clock->advance(seconds(2));
    const test::Frame ping = raw.next(FrameType::ping);
    REQUIRE(ping.header.type == FrameType::ping);
    REQUIRE(raw.send(test::frame_bytes(FrameType::pong, ping.header.request, "")).ok());
    CHECK(raw.ping().header.request == 77);
  }
  clock->advance(seconds(10));
  const Status status = raw.owner->closed();
  CHECK(status.code() == Code::unavailable);
  CHECK(mentions(status, "near has been silent for 10000 ms"));
}

TEST_CASE("a silent peer is given up when its time is over, whenever it was heard last", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  Raw raw(test::options_of("far", clock));
  const auto connection = raw.shake();
  clock->advance(std::chrono::milliseconds(700));
  CHECK(raw.ping().header.request == 77);
  clock->advance(std::chrono::milliseconds(9999));
  CHECK(connection->is_open());
  clock->advance(std::chrono::milliseconds(1));
  CHECK_FALSE(connection->is_open());
  CHECK(mentions(raw.owner->closed(), "near has been silent for 10000 ms"));
}

TEST_CASE("a peer that does not read one write is given up when the time for that is over", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  auto options = test::options_of("far", clock);
  options.stall_timeout = std::chrono::milliseconds(4500);
  Raw raw(options);
  const auto connection = raw.shake();
  CHECK(connection->post(1, std::string(5'000'000, 'x')).ok());
  clock->advance(std::chrono::milliseconds(4499));
  CHECK(connection->is_open());
  clock->advance(std::chrono::milliseconds(1));
  CHECK_FALSE(connection->is_open());
  CHECK(mentions(raw.owner->closed(), "does not read what is sent to it"));
}

TEST_CASE("a ping is answered with its number and bytes", "[net]") {
  Raw raw;
  raw.shake();
  REQUIRE(raw.send(test::frame_bytes(FrameType::ping, 123, "bytes")).ok());
  const test::Frame pong = raw.next(FrameType::pong);
  CHECK(pong.header.request == 123);
  CHECK(pong.payload == "bytes");
}

TEST_CASE("a silent peer that does not read either is let go of, with what was to be sent to it", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  const auto token = std::make_shared<int>(0);
  Raw raw(test::holding(test::options_of("far", clock), token));
  auto connection = raw.shake();
  CHECK(connection->post(1, std::string(5'000'000, 'x')).ok());
  clock->advance(seconds(10));
  CHECK(mentions(raw.owner->closed(), "silent"));
  connection.reset();
  raw.opening = {};
  CHECK(test::comes_to_be_alone(token));
}

TEST_CASE("a goodbye comes after what is being sent, or is given up when nobody reads", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  const auto token = std::make_shared<int>(0);
  Raw raw(test::holding(test::options_of("far", clock), token));
  auto connection = raw.shake();
  CHECK(connection->post(1, std::string(5'000'000, 'x')).ok());
  connection->close(Status::aborted("why it goes"));
  CHECK(mentions(raw.owner->closed(), "why it goes"));
  SECTION("somebody reads, and ends the stream") {
    CHECK(mentions(raw.goodbye(), "why it goes"));
    raw.stream->close();
  }
  SECTION("somebody reads, and goes on to send") {
    CHECK(mentions(raw.goodbye(), "why it goes"));
    CHECK(raw.send(test::request_bytes(1, "nobody serves it")).ok());
    clock->advance(seconds(2));
    CHECK(test::read(*raw.stream, 1).empty());
  }
  SECTION("nobody does") { clock->advance(seconds(2)); }
  connection.reset();
  raw.opening = {};
  CHECK(test::comes_to_be_alone(token));
}

// ---- answers ----

TEST_CASE("a peer that asks and does not read the answers is given up", "[net]") {
  auto options = test::options_of("far");
  options.max_answer_bytes = 100'000;
  options.heartbeat_interval = std::chrono::milliseconds(50);  // the connection waits this long to say why
  Raw raw(options);
  raw.shake();
  const bool pings = GENERATE(true, false);
  const std::string question = pings ? test::frame_bytes(FrameType::ping, 1, std::string(1000, 'x')) : std::string();
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    if (!raw.send(pings ? question : test::request_bytes(i, std::string(1000, 'x'))).ok()) break;
  }
  const Status status = raw.owner->closed();
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(mentions(status, "near asks, and does not read the answers"));
}

TEST_CASE("a peer that does not read what it is sent unasked is sent no more, and given up", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  auto options = test::options_of("far", clock);
  options.max_request_bytes = 100'000;
  options.heartbeat_timeout = options.stall_timeout * 2;  // the peer shows that it lives
  Raw raw(options);
  const auto connection = raw.shake();
  Status status;
  int num_posts = 0;
  for (; status.ok() && num_posts < 1000; ++num_posts) status = connection->post(1, std::string(10'000, 'x'));
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(mentions(status, "near does not read what is sent to it"));
  CHECK(num_posts < 200);
  // What was refused once may fit a moment later: the stream takes some bytes that nobody reads.
  const auto is_refused = std::make_shared<std::atomic<bool>>(false);
  for (int i = 0; i < 1000 && !is_refused->load(); ++i) {
    Call call;
    call.message.body = std::string(10'000, 'x');
    connection->call(std::move(call), [is_refused](const Status& why, const std::string&) {
      if (why.code() == Code::resource_exhausted) is_refused->store(true);
    });
  }
  CHECK(test::comes_true([&] { return is_refused->load(); }));
  CHECK(connection->is_open());
  // Credit is not reading.
  REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, std::string(8, '\0'))).ok());
  clock->advance(options.stall_timeout + options.heartbeat_interval);
  CHECK(mentions(raw.owner->closed(), "near does not read what is sent to it"));
}

// ---- handshakes that lead nowhere ----

TEST_CASE("a peer that does not introduce itself in time is let go of", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  const auto token = std::make_shared<int>(0);
  Raw raw(test::holding(test::options_of("far", clock), token));
  SECTION("it says nothing") {}
  SECTION("it stops after its hello") {
    std::string hello = raw.introduction();
    hello.resize(hello.size() - FrameHeader::size - 32);
    REQUIRE(raw.send(hello).ok());
    raw.next(FrameType::proof);
  }
  SECTION("it stops within its hello") { REQUIRE(raw.send(raw.introduction().substr(0, 50)).ok()); }
  clock->advance(seconds(10));
  const Status status = raw.opening.wait().first;
  CHECK(status.code() == Code::deadline_exceeded);
  CHECK(mentions(status, "has not introduced itself in time"));
  CHECK(test::comes_to_be_alone(token));
  CHECK(raw.owner->num_closed == 0);
}

TEST_CASE("five hundred that connect and say nothing cost others nothing, and go", "[net]") {
  test::Wire wire;
  test::Lines lines;
  const auto clock = std::make_shared<VirtualClock>();
  const auto token = std::make_shared<int>(0);
  std::vector<std::unique_ptr<Stream>> idle;
  std::vector<test::Opening> openings(500);
  for (test::Opening& opening : openings) {
    test::Ends ends = wire.ends();
    idle.push_back(std::move(ends.near));
    auto options = test::options_of("far", clock);
    options.log = [token, log = lines.log()](std::string_view line) { log(line); };
    Connection::open(std::move(ends.far), Role::acceptor, std::move(options), nullptr, opening.done());
  }
  // One more, by the same listener and pool.
  test::Ends ends = wire.ends();
  test::Opening near_opening, far_opening;
  Connection::open(std::move(ends.far), Role::acceptor, test::options_of("far"), std::make_shared<test::Owner>(),
                   far_opening.done());
  Connection::open(std::move(ends.near), Role::connector, test::options_of("near"), nullptr, near_opening.done());
  const auto near = near_opening.wait().second;
  REQUIRE(near != nullptr);
  const auto ask = [&] {
    test::Answered answered;
    Call call;
    call.message.body = "still there";
    near->call(std::move(call), answered.done());
    return answered.wait().second;
  };
  CHECK(ask() == "still there");
  clock->advance(seconds(10));
  int late = 0;
  for (test::Opening& opening : openings) late += opening.wait().first.code() == Code::deadline_exceeded ? 1 : 0;
  CHECK(late == 500);
  CHECK(lines.count("has not introduced itself in time") == 500);
  CHECK(ask() == "still there");
  CHECK(test::comes_to_be_alone(token));
  near->close(Status::cancelled("done"));
}

TEST_CASE("posts are remembered until the peer has shown that it has read them, up to a limit", "[net]") {
  auto options = test::options_of("far");
  options.max_unread_posts = 128;
  test::Raw raw(options);
  const auto connection = raw.shake();
  CHECK(connection->post(1, "without a mark").ok());
  CHECK(connection->unread_posts().empty());
  for (std::uint64_t mark = 0; mark < 128; ++mark) CHECK(connection->post(1, "a post", mark).ok());
  CHECK(connection->unread_posts().size() == 128);
  CHECK(connection->post(1, "without a mark").ok());
  // The connection asks by ping about all that it has sent, not only when there is no room left.
  const test::Frame first = raw.next(FrameType::ping), second = raw.next(FrameType::ping);
  REQUIRE(second.header.type == FrameType::ping);
  CHECK(first.header.request < second.header.request);
  REQUIRE(raw.send(test::frame_bytes(FrameType::pong, first.header.request, "")).ok());
  raw.ping();
  const std::vector<std::uint64_t> left = connection->unread_posts();
  REQUIRE_FALSE(left.empty());
  CHECK(left.size() < 128);
  CHECK(left.front() == 128 - left.size());
  CHECK(left.back() == 127);
  CHECK(connection->post(1, "a post", 200).ok());
  // Any answer also says which posts the peer has read.
  test::Answered answered;
  connection->call({}, answered.done());
  CHECK(connection->post(1, "a post", 201).ok());
  test::Frame request;
  while (raw.read_frame(request) && (request.header.type != FrameType::request || request.header.flags != 0)) {
  }
  REQUIRE(raw.send(test::reply_bytes(request.header.request, "")).ok());
  CHECK(answered.wait().first.ok());
  CHECK(connection->unread_posts() == std::vector<std::uint64_t>{201});
  connection->close(Status::cancelled("done"));
  CHECK(connection->unread_posts() == std::vector<std::uint64_t>{201});
}

TEST_CASE("posts beyond the limit wait for the peer to read others, and are left out if nobody wants them", "[net]") {
  auto options = test::options_of("far");
  options.max_unread_posts = 128;
  test::Raw raw(options);
  const auto connection = raw.shake();
  bool is_wanted = true;
  for (std::uint64_t mark = 0; mark < 256; ++mark) {
    CHECK(connection->post(1, str_cat("post ", mark), mark, [&, mark] { return is_wanted || mark % 2 == 0; }).ok());
  }
  CHECK(connection->unread_posts().size() == 256);
  CHECK(connection->post(1, "one too many", 256).code() == Code::resource_exhausted);
  is_wanted = false;
  CHECK(connection->post(1, "post 256", 256).ok());
  CHECK(connection->unread_posts().size() == 128 + 64 + 1);
  // The peer reads: each ping that it answers makes room for more.
  std::vector<std::string> bodies;
  while (bodies.empty() || !bodies.back().ends_with("post 256")) {
    test::Frame frame;
    REQUIRE(raw.read_frame(frame));
    if (frame.header.type == FrameType::request) bodies.push_back(frame.payload);
    if (frame.header.type != FrameType::ping) continue;
    REQUIRE(raw.send(test::frame_bytes(FrameType::pong, frame.header.request, "")).ok());
  }
  REQUIRE(bodies.size() == 128 + 64 + 1);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    CHECK(bodies[i].ends_with(str_cat("post ", i < 128 ? i : 128 + 2 * (i - 128))));
  }
  connection->close(Status::cancelled("done"));
}

TEST_CASE("the peer is asked about posts at each 64th part of their limit, and as many follow as it has read",
          "[net]") {
  auto options = test::options_of("far");
  options.max_unread_posts = 256;
  test::Raw raw(options);
  const auto connection = raw.shake();
  for (std::uint64_t mark = 0; mark < 300; ++mark) CHECK(connection->post(1, "a post", mark).ok());
  std::uint64_t first_ping = 0;
  for (int posts = 0, pings = 0; posts < 256;) {
    test::Frame frame;
    REQUIRE(raw.read_frame(frame));
    if (frame.header.type == FrameType::request) ++posts;
    if (frame.header.type != FrameType::ping) continue;
    CHECK(posts == 4 * ++pings);
    if (pings == 1) first_ping = frame.header.request;
  }
  REQUIRE(raw.send(test::frame_bytes(FrameType::pong, first_ping, "")).ok());
  REQUIRE(raw.send(test::frame_bytes(FrameType::ping, 77, "")).ok());
  int more = 0;
  test::Frame frame;
  while (raw.read_frame(frame) && frame.header.type != FrameType::pong) {
    if (frame.header.type == FrameType::request) ++more;
  }
  CHECK(more == 4);
  connection->close(Status::cancelled("done"));
}

TEST_CASE("posts that wait count among the bytes that the peer has not read", "[net]") {
  auto options = test::options_of("far");
  options.max_unread_posts = 4;
  options.max_request_bytes = 5000;
  test::Raw raw(options);
  const auto connection = raw.shake();
  const auto post = [&](std::size_t bytes, UniqueFunction<bool()> is_wanted = nullptr) {
    return connection->post(1, std::string(bytes, 'x'), 1 + connection->unread_posts().size(), std::move(is_wanted));
  };
  for (int i = 0; i < 4; ++i) REQUIRE(post(1).ok());
  for (int i = 0; i < 4; ++i) REQUIRE(raw.next(FrameType::request).header.type == FrameType::request);
  raw.ping();  // what was read is no longer being written
  // Posts that nobody wants make room for others, and their bytes for the bytes of others.
  bool is_wanted = true;
  for (int i = 0; i < 4; ++i) CHECK(post(1000, [&] { return is_wanted; }).ok());
  CHECK(post(1000).code() == Code::resource_exhausted);
  is_wanted = false;
  for (int i = 0; i < 4; ++i) CHECK(post(1000).ok());
  connection->close(Status::cancelled("done"));
}

TEST_CASE("bytes of posts that have waited are free when the posts go out", "[net]") {
  auto options = test::options_of("far");
  options.max_unread_posts = 64;
  options.max_request_bytes = 5000;
  test::Raw raw(options);
  const auto connection = raw.shake();
  std::uint64_t last_ping = 0;
  const auto read_posts = [&](int posts) {
    while (posts > 0) {
      test::Frame frame;
      REQUIRE(raw.read_frame(frame));
      if (frame.header.type == FrameType::request) --posts;
      if (frame.header.type == FrameType::ping) last_ping = frame.header.request;
    }
    raw.ping();  // what was read is no longer being written
  };
  std::uint64_t mark = 0;
  for (int i = 0; i < 64; ++i) REQUIRE(connection->post(1, "x", mark++).ok());
  read_posts(64);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    for (int i = 0; i < 3; ++i) CHECK(connection->post(1, std::string(2000, 'x'), mark++).ok());
    CHECK(connection->post(1, std::string(2000, 'x'), mark).code() == Code::resource_exhausted);
    REQUIRE(raw.send(test::frame_bytes(FrameType::pong, last_ping, "")).ok());
    read_posts(3);
    // All but the last are answered for; others take their places.
    const std::size_t free = 64 - connection->unread_posts().size();
    for (std::size_t i = 0; i < free; ++i) REQUIRE(connection->post(1, "x", mark++).ok());
    read_posts(static_cast<int>(free));
  }
  connection->close(Status::cancelled("done"));
}

TEST_CASE("the memory for a reply that was given up is let go of while the rest comes", "[net]") {
  test::Raw raw;
  const auto connection = raw.shake();
  std::weak_ptr<std::vector<std::byte>> placed;
  CancellationSource source;
  Call call;
  call.cancellation = source.token();
  call.place_payload = [&](std::string_view, std::uint64_t size) -> StatusOr<PayloadMemory> {
    const auto memory = std::make_shared<std::vector<std::byte>>(size);
    placed = memory;
    return PayloadMemory{*memory, memory};
  };
  test::Answered answered;
  connection->call(std::move(call), answered.done());
  const std::uint64_t request = raw.next(FrameType::request).header.request;
  const std::string part(100, 'x');
  constexpr std::uint16_t of_reply = 1;
  REQUIRE(raw.send(test::reply_bytes(request, "", 300)).ok());
  REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, request, part, of_reply)).ok());
  raw.ping();
  CHECK_FALSE(placed.expired());
  source.cancel(Status::cancelled("enough"));
  CHECK(answered.wait().first.code() == Code::cancelled);
  REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, request, part, of_reply)).ok());
  raw.ping();
  CHECK(placed.expired());
  REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, request, part, of_reply)).ok());
  raw.ping();
  CHECK(connection->is_open());
  connection->close(Status::cancelled("done"));
}

TEST_CASE("who asks for a payload and takes nothing of it is left after a while, who takes some is not", "[net]") {
  const bool takes = GENERATE(false, true);
  const auto clock = std::make_shared<VirtualClock>();
  std::weak_ptr<std::string> held;
  const auto answer = [&](const std::shared_ptr<Connection>&, const Incoming&, Responder respond) {
    const auto bytes = std::make_shared<std::string>(1'000'000, 'x');
    held = bytes;
    respond(Outgoing{"", {{test::bytes_of(*bytes)}, bytes}});
  };
  constexpr std::uint64_t window = 1000;
  test::Raw raw(test::options_of("far", clock), std::make_shared<test::Owner>(answer), window);
  const auto connection = raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "all of it")).ok());
  for (int seconds = 0; seconds < 590; seconds += 2) {
    raw.ping();
    clock->advance(std::chrono::seconds(2));
  }
  CHECK(connection->is_open());
  if (takes) REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(window))).ok());
  for (int seconds = 0; seconds < 20 && connection->is_open(); seconds += 2) {
    raw.ping();
    clock->advance(std::chrono::seconds(2));
  }
  CHECK(connection->is_open() == takes);
  CHECK(held.expired() != takes);
  if (takes) return connection->close(Status::cancelled("done"));
  CHECK(raw.goodbye().code() == Code::resource_exhausted);
}

TEST_CASE("a peer that has taken all that it asked for may give its credit back late", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  const auto options = test::options_of("far", clock);
  Raw raw(options, giver(), 1000);
  const auto connection = raw.shake();
  for (std::uint64_t round = 1; round <= 2; ++round) {
    REQUIRE(raw.send(test::request_bytes(round, "1000")).ok());
    CHECK(read_chunks(raw, 1000) == 1000);  // all of its credit
    const Clock::time_point late = clock->after(options.stall_timeout * 2);
    while (clock->now() < late && connection->is_open()) {
      CHECK(raw.ping().header.request == 77);
      clock->advance(options.heartbeat_interval);
    }
    REQUIRE(connection->is_open());
    REQUIRE(raw.send(test::frame_bytes(FrameType::credit, 0, test::u64_bytes(1000))).ok());
  }
  connection->close(Status::cancelled("done"));
}
