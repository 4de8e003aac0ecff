// Bytes that are not a conversation: the connection ends, says why, and passes nothing to the owner.
#include <dflow/net/protocol/connection.hpp>

#include "catch.hpp"
#include "connection_harness.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using test::frame_bytes;
using test::Raw;

namespace {

/// A frame with a header that no writer sends, and the right checksum.
std::string odd_frame(const std::function<void(FrameHeader&)>& change, std::string_view payload = {}) {
  FrameHeader header{.type = FrameType::request, .request = 1};
  const std::span<const std::byte> part = test::bytes_of(payload);
  describe_payload(header, {&part, 1});
  change(header);
  const FrameHeaderBytes bytes = to_bytes(header);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(payload);
}

struct Nonsense {
  const char* what;
  std::string bytes;
  Code code;
  const char* text;
};

std::vector<Nonsense> all_nonsense() {
  std::string magic = frame_bytes(FrameType::ping, 1, ""), version = magic, header_sum = magic, sum;
  magic[0] = 'D';
  version[4] = 2;
  header_sum[30] ^= 1;
  sum = frame_bytes(FrameType::ping, 1, "payload");
  sum.back() ^= 1;
  std::string short_status;
  ByteWriter(short_status).u8(3);
  const std::string two = test::request_bytes(1, "", 10);
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  return {
      {"bad magic", magic, Code::invalid_argument, "no frame of dflow"},
      {"another version", version, Code::failed_precondition, "version 2 of the protocol, not 1"},
      {"a wrong checksum of the header", header_sum, Code::data_loss, "the header of a frame"},
      {"a wrong checksum of the payload", sum, Code::data_loss, "the payload of a frame"},
      {"a length of 2^63", odd_frame([](FrameHeader& h) { h.length = std::uint64_t{1} << 63; }), Code::out_of_range,
       "a frame of 9223372036854775808 bytes"},
      {"an unknown type", odd_frame([](FrameHeader& h) { h.type = static_cast<FrameType>(11); }), Code::unimplemented,
       "a frame of unknown type 11"},
      {"type 0", odd_frame([](FrameHeader& h) { h.type = static_cast<FrameType>(0); }), Code::unimplemented,
       "a frame of unknown type 0"},
      {"unknown flags", frame_bytes(FrameType::ping, 1, "", 1), Code::invalid_argument, "unknown flags 1"},
      {"flags of another type", frame_bytes(FrameType::reply, 1, "", 4), Code::invalid_argument, "unknown flags 4"},
      {"a request without anything", frame_bytes(FrameType::request, 1, ""), Code::data_loss, "input ends early"},
      {"a reply that is cut", frame_bytes(FrameType::reply, 1, "1234567"), Code::data_loss, "input ends early"},
      {"an error that is cut", frame_bytes(FrameType::reply, 1, short_status, 2), Code::data_loss, "input ends early"},
      {"a goodbye that is cut", frame_bytes(FrameType::goodbye, 0, short_status), Code::data_loss, "input ends early"},
      {"credit that is cut", frame_bytes(FrameType::credit, 0, "1234567"), Code::data_loss, "input ends early"},
      {"credit with bytes left over", frame_bytes(FrameType::credit, 0, "123456789"), Code::data_loss, "left over"},
      {"a hello after the handshake", frame_bytes(FrameType::hello, 0, ""), Code::invalid_argument,
       "a frame of the handshake after it"},
      {"a proof after the handshake", frame_bytes(FrameType::proof, 0, ""), Code::invalid_argument,
       "a frame of the handshake after it"},
      {"a post with a payload", test::request_bytes(1, "", 10, 4), Code::invalid_argument, "cannot have a payload"},
      {"a request too large", test::request_bytes(1, "", std::uint64_t{1} << 62), Code::out_of_range,
       "a request with 4611686018427387904 bytes"},
      {"a chunk of nothing that was announced", frame_bytes(FrameType::chunk, 9, "x"), Code::invalid_argument,
       "a chunk that belongs to nothing"},
      {"a chunk of length 0", two + frame_bytes(FrameType::chunk, 1, ""), Code::invalid_argument,
       "does not fit what was announced"},
      {"a chunk beyond what was announced", two + frame_bytes(FrameType::chunk, 1, "12345678901"),
       Code::invalid_argument, "does not fit what was announced"},
      {"a chunk after the last",
       two + frame_bytes(FrameType::chunk, 1, "1234567890") + frame_bytes(FrameType::chunk, 1, "x"),
       Code::invalid_argument, "a chunk that belongs to nothing"},
      {"two requests of one number", two + two, Code::invalid_argument, "two requests of one number"},
      {"a request of number 2^63", test::request_bytes(top, "body"), Code::invalid_argument, "numbers are below 2^63"},
      {"a post of number 2^63", test::request_bytes(top, "body", 0, 4), Code::invalid_argument,
       "numbers are below 2^63"},
      {"a request with a payload of number 2^63 + 1", two + test::request_bytes(top + 1, "", 10),
       Code::invalid_argument, "the request 9223372036854775809: their numbers are below 2^63"},
      {"a chunk of another request but for the top bit", two + frame_bytes(FrameType::chunk, top + 1, "x"),
       Code::invalid_argument, "numbers are below 2^63"},
      {"a reply to number 2^64 - 1", test::reply_bytes(~std::uint64_t{0}, "", 10), Code::invalid_argument,
       "numbers are below 2^63"},
      {"a cancel of number 2^63", frame_bytes(FrameType::cancel, top, ""), Code::invalid_argument,
       "numbers are below 2^63"},
      {"two replies to one request", test::reply_bytes(1, "", 10) + test::reply_bytes(1, "", 10),
       Code::invalid_argument, "two replies to one request"},
  };
}

}  // namespace

TEST_CASE("nonsense ends the connection with a reason, on both sides, and no other", "[net]") {
  Raw other;
  other.shake();
  for (const Nonsense& nonsense : all_nonsense()) {
    INFO(nonsense.what);
    Raw raw(test::options_of("far"), std::make_shared<test::Owner>([](const auto&, const Incoming&, Responder) {}));
    raw.shake();
    static_cast<void>(raw.send(nonsense.bytes));
    const Status told = raw.goodbye(), closed = raw.owner->closed();
    INFO(told.to_string());
    CHECK(told.code() == nonsense.code);
    CHECK(mentions(told, nonsense.text));
    CHECK(closed.code() == nonsense.code);
    CHECK(closed.task() == "near");
    CHECK(other.ping().header.request == 77);
  }
}

TEST_CASE("what a dflow task may say harmlessly is passed over", "[net]") {
  Raw raw;
  raw.shake();
  REQUIRE(raw.send(frame_bytes(FrameType::pong, 5, "x") + frame_bytes(FrameType::cancel, 99, "") +
                   test::reply_bytes(12345, "to nobody") + test::reply_bytes(12346, "to nobody", 5) +
                   frame_bytes(FrameType::chunk, 12346, "12345", 1) +
                   frame_bytes(FrameType::credit, 0, test::u64_bytes(0)))
              .ok());
  CHECK(raw.ping().header.request == 77);
  REQUIRE(raw.send(test::request_bytes(1, "body", 0, 4)).ok());  // a post
  CHECK(raw.ping().header.request == 77);
  CHECK(raw.owner->num_requests == 1);
}

TEST_CASE("an exchange that is cut anywhere ends with Unavailable, and without its request", "[net]") {
  std::size_t length = 1000;
  for (std::size_t cut = 0; cut < length; ++cut) {
    Raw raw;
    const std::string introduction = raw.introduction();
    const std::string bytes = introduction + test::request_bytes(1, "body");
    length = bytes.size();
    INFO("after " << cut << " of " << length << " bytes");
    if (cut != 0) REQUIRE(raw.send(bytes.substr(0, cut)).ok());
    raw.stream->close();
    const Status opened = raw.opening.wait().first;
    if (opened.ok()) {
      CHECK(cut >= introduction.size());
      CHECK(raw.owner->closed().code() == Code::unavailable);
    } else {
      CHECK(opened.code() == Code::unavailable);
    }
    CHECK(raw.owner->num_requests == 0);
  }
}

TEST_CASE("each flipped bit of an exchange ends it, with a reason, before the request", "[net]") {
  std::size_t bits = 8;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    Raw raw;
    std::string bytes = raw.introduction() + test::request_bytes(1, "body");
    bits = 8 * bytes.size();
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit);
    static_cast<void>(raw.send(bytes));
    CHECK_FALSE(raw.goodbye().ok());
    CHECK(raw.owner->num_requests == 0);
  }
}

TEST_CASE("a million random bytes, before the handshake and after it, end a connection", "[net]") {
  const int seed = GENERATE(1, 2, 3, 4);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::string bytes(1'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t number = random();
    std::memcpy(bytes.data() + i, &number, 8);
  }
  const bool is_open = GENERATE(false, true);
  Raw raw;
  if (is_open) raw.shake();
  static_cast<void>(raw.send(bytes));
  const Status told = raw.goodbye();
  CHECK(told.code() == Code::invalid_argument);
  CHECK(mentions(told, "no frame of dflow"));
  CHECK(raw.owner->num_requests == 0);
}
