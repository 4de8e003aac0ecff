#include <dflow/net/protocol/frame_stream.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

std::span<const std::byte> stretch_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Notes frames as lines, and puts the chunks of each request together.
class NotingSink final : public FrameSink {
 public:
  void on_frame(const FrameHeader& header, std::string payload) override {
    lines.push_back(std::to_string(static_cast<int>(header.type)) + ":" + std::to_string(header.request) + ":" +
                    payload);
  }
  std::span<std::byte> on_chunk(const FrameHeader& header) override {
    if (skips) return {};
    chunk_.resize(header.length);
    return chunk_;
  }
  void on_chunk_end(const FrameHeader& header) override {
    lines.push_back("chunk:" + std::to_string(header.request) + ":" + std::to_string(header.length));
    chunks[header.request].append(reinterpret_cast<const char*>(chunk_.data()), chunk_.size());
  }

  bool skips = false;
  std::vector<std::string> lines;
  std::map<std::uint64_t, std::string> chunks;

 private:
  std::vector<std::byte> chunk_;
};

/// All that can go now.
std::string drain(FrameWriter& writer) {
  std::string bytes;
  FrameWriter::Batch batch;
  for (; writer.next(batch); batch.clear()) {
    for (const auto part : batch.parts) bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return bytes;
}

/// In pieces of at most `most` bytes.
void feed(FrameReader& reader, std::string_view bytes, std::size_t most) {
  while (!bytes.empty()) {
    const std::span<std::byte> room = reader.room();
    REQUIRE(!room.empty());
    const std::size_t count = std::min({room.size(), most, bytes.size()});
    std::memcpy(room.data(), bytes.data(), count);
    reader.take(count);
    bytes.remove_prefix(count);
  }
}

Payload payload_of(std::vector<std::string> parts) {
  auto owner = std::make_shared<std::vector<std::string>>(std::move(parts));
  Payload payload;
  for (const std::string& part : *owner) payload.parts.push_back(stretch_of(part));
  payload.owner = owner;
  return payload;
}

}  // namespace

TEST_CASE("frames come out of a stream as they went in, in pieces of any size", "[net]") {
  FrameWriter writer(1000);
  writer.add_credit(1 << 20);
  std::string large(70'001, '\0');
  std::mt19937 random(3);
  for (char& c : large) c = static_cast<char>(random());
  // Short bodies lie in the strings themselves.
  for (int i = 0; i < 40; ++i) writer.add({.type = FrameType::request, .request = 5}, std::string(i % 20, 'a'));
  writer.add({.type = FrameType::ping, .request = 6}, {});
  writer.add_payload({.type = FrameType::chunk, .request = 5}, payload_of({large}));
  const std::string bytes = drain(writer);
  const std::size_t most = GENERATE(1, 7, 31, 32, 33, 1000, 1 << 20);
  NotingSink sink;
  FrameReader reader(sink, 1 << 10, 1000);
  feed(reader, bytes, most);
  REQUIRE(sink.lines.size() == 41 + 71);
  CHECK(sink.lines[0] == "3:5:");
  CHECK(sink.lines[39] == "3:5:" + std::string(19, 'a'));
  CHECK(sink.lines[40] == "8:6:");
  CHECK(sink.lines.back() == "chunk:5:1");
  CHECK(sink.chunks[5] == large);
}

TEST_CASE("chunks that nobody wants are skipped, and checked all the same", "[net]") {
  FrameWriter writer(100);
  writer.add_credit(1000);
  writer.add_payload({.type = FrameType::chunk, .request = 5}, payload_of({std::string(250, 'x')}));
  writer.add({.type = FrameType::ping, .request = 6}, {});
  std::string bytes = drain(writer);
  NotingSink sink;
  sink.skips = true;
  FrameReader reader(sink, 100, 100);
  feed(reader, bytes, 11);
  CHECK(sink.lines == std::vector<std::string>{"8:6:", "chunk:5:100", "chunk:5:100", "chunk:5:50"});
  bytes.back() ^= 1;
  FrameReader other(sink, 100, 100);
  CHECK(code_of([&] { return feed(other, bytes, 11), 0; }) == Code::data_loss);
}

TEST_CASE("frames longer than is allowed are refused before their bytes come", "[net]") {
  NotingSink sink;
  FrameReader reader(sink, 100, 10);
  FrameHeader header{.type = FrameType::request, .length = 101};
  const auto text_of = [](const FrameHeader& of) {
    const FrameHeaderBytes bytes = to_bytes(of);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  CHECK(code_of([&] { return feed(reader, text_of(header), 32), 0; }) == Code::out_of_range);
  FrameReader chunks(sink, 100, 10);
  header = {.type = FrameType::chunk, .length = 11};
  CHECK(code_of([&] { return feed(chunks, text_of(header), 32), 0; }) == Code::out_of_range);
  FrameReader grown(sink, 100, 10);
  grown.set_max_body_bytes(101);
  header = {.type = FrameType::request, .length = 101};
  CHECK_NOTHROW(feed(grown, text_of(header), 32));
  CHECK(sink.lines.empty());
}

TEST_CASE("what is no chunk goes first, and chunks of all payloads by turns", "[net]") {
  FrameWriter writer(10);
  writer.add_credit(1000);
  writer.add_payload({.type = FrameType::chunk, .request = 1}, payload_of({std::string(25, 'x')}));
  writer.add_payload({.type = FrameType::chunk, .request = 2}, payload_of({std::string(15, 'y')}));
  writer.add({.type = FrameType::reply, .request = 3}, "small");
  CHECK(writer.num_queued() == 3);
  CHECK(writer.num_payloads() == 2);
  NotingSink sink;
  FrameReader reader(sink, 100, 10);
  feed(reader, drain(writer), 1000);
  CHECK(sink.lines ==
        std::vector<std::string>{"4:3:small", "chunk:1:10", "chunk:2:10", "chunk:1:10", "chunk:2:5", "chunk:1:5"});
  CHECK(writer.num_queued() == 0);
}

TEST_CASE("chunks go as far as there is credit", "[net]") {
  FrameWriter writer(10);
  writer.add_payload({.type = FrameType::chunk, .request = 1}, payload_of({std::string(25, 'x')}));
  CHECK(drain(writer).empty());
  writer.add_credit(13);
  CHECK(drain(writer).size() == 2 * FrameHeader::size + 13);
  CHECK(writer.credit() == 0);
  writer.add({.type = FrameType::ping}, {});
  CHECK(drain(writer).size() == FrameHeader::size);
  writer.add_credit(100);
  CHECK(drain(writer).size() == 2 * FrameHeader::size + 12);
  CHECK(writer.credit() == 88);
}

TEST_CASE("empty parts of a payload make no chunk, wherever they are", "[net]") {
  const std::vector<std::string> parts = GENERATE(
      std::vector<std::string>{std::string(10, 'x'), ""}, std::vector<std::string>{"", std::string(20, 'x'), "", ""},
      std::vector<std::string>{"", "x", "", "yz", ""}, std::vector<std::string>{"", ""}, std::vector<std::string>{});
  std::string whole;
  for (const std::string& part : parts) whole += part;
  FrameWriter writer(10);
  writer.add_credit(whole.size());  // ends with the last byte, too
  Payload payload = payload_of(parts);
  const std::weak_ptr<const void> kept = payload.owner;
  writer.add_payload({.type = FrameType::chunk, .request = 1}, std::move(payload));
  const std::string bytes = drain(writer);
  CHECK(writer.num_queued() == 0);
  CHECK(kept.expired());
  writer.add_credit(100);
  CHECK(drain(writer).empty());
  NotingSink sink;
  FrameReader reader(sink, 100, 10);
  feed(reader, bytes, 1000);
  CHECK(sink.chunks[1] == whole);
  for (const std::string& line : sink.lines) CHECK(line != "chunk:1:0");
}

TEST_CASE("a payload that nobody wants any more is dropped, and let go of", "[net]") {
  FrameWriter writer(10);
  const FrameHeader chunks{.type = FrameType::chunk, .request = 1};
  Payload payload = payload_of({std::string(30, 'x')});
  const std::weak_ptr<const void> kept = payload.owner;
  writer.add_payload(chunks, std::move(payload));
  writer.add_credit(10);
  CHECK(drain(writer).size() == FrameHeader::size + 10);
  CHECK_FALSE(kept.expired());
  CHECK_FALSE(writer.drop_payload({.type = FrameType::chunk, .flags = 1, .request = 1}));
  CHECK(writer.drop_payload(chunks));
  CHECK_FALSE(writer.drop_payload(chunks));
  CHECK(kept.expired());
  writer.add_credit(10);
  CHECK(drain(writer).empty());
}

TEST_CASE("answers that wait are counted until they go", "[net]") {
  FrameWriter writer(10);
  writer.add({.type = FrameType::request}, std::string(1000, 'x'));
  CHECK(writer.answer_bytes() == 0);
  writer.add({.type = FrameType::reply}, std::string(1000, 'x'));
  CHECK(writer.answer_bytes() >= 1000);
  writer.add({.type = FrameType::pong}, {});
  CHECK(writer.answer_bytes() >= 1000 + FrameHeader::size);
  static_cast<void>(drain(writer));
  CHECK(writer.answer_bytes() == 0);
}

TEST_CASE("requests that wait are counted until they go, and go by and by", "[net]") {
  FrameWriter writer(10);
  for (int i = 0; i < 3; ++i) writer.add({.type = FrameType::request}, std::string(1 << 20, 'x'));
  CHECK(writer.request_bytes() >= 3 << 20);
  FrameWriter::Batch batch;
  REQUIRE(writer.next(batch));
  CHECK(writer.request_bytes() >= 2 << 20);
  CHECK(writer.num_queued() == 2);
  batch.clear();
  static_cast<void>(drain(writer));
  CHECK(writer.request_bytes() == 0);
}

TEST_CASE("of many payloads the right ones are dropped, in any order and by turns with what is sent", "[net]") {
  FrameWriter writer(10);
  const auto chunks = [](std::uint64_t request, bool of_reply) {
    return FrameHeader{.type = FrameType::chunk, .flags = static_cast<std::uint16_t>(of_reply), .request = request};
  };
  for (std::uint64_t request = 0; request < 100; ++request) {
    for (const bool of_reply : {false, true})
      writer.add_payload(chunks(request, of_reply), payload_of({"twelve bytes"}));
  }
  for (std::uint64_t request = 0; request < 100; request += 2) CHECK(writer.drop_payload(chunks(request, true)));
  writer.add_credit(150 * 10 + 20 * 2);  // the first chunk of each, and the rest of some
  NotingSink sink;
  FrameReader reader(sink, 100, 10);
  feed(reader, drain(writer), 1000);
  CHECK(writer.num_payloads() == 130);
  int left = 0;
  for (std::uint64_t request = 0; request < 101; ++request) {
    for (const bool of_reply : {false, true}) left += writer.drop_payload(chunks(request, of_reply)) ? 1 : 0;
  }
  CHECK(left == 130);
  CHECK(writer.num_queued() == 0);
}
