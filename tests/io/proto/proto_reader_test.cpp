#include <dflow/base/status.hpp>
#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

constexpr std::array<std::int64_t, 4> some_integers = {0, -1, 300, std::numeric_limits<std::int64_t>::min()};
constexpr std::array<float, 2> some_floats = {0.5f, -2.0f};

std::string proto_sample() {
  std::string bytes;
  ProtoWriter out(bytes);
  out.uint64(1, 300);
  out.sint64(2, -3);
  out.fixed32(3, 7);
  out.float64(4, 2.5);
  out.bytes(5, "text");
  out.packed(6, std::span<const std::int64_t>(some_integers));
  out.packed(7, std::span<const float>(some_floats));
  out.message(8, [](ProtoWriter& inner) { inner.message(8, [](ProtoWriter& last) { last.bytes(5, "deep"); }); });
  return bytes;
}

/// Reads the whole message, as a caller that knows the fields.
std::string read_proto_sample(std::string_view bytes, int max_depth = ProtoReader::default_max_depth) {
  std::string seen;
  std::vector<std::int64_t> more_integers;
  std::vector<float> more_floats;
  const auto read = [&](auto& self, ProtoReader in) -> void {
    while (in.next()) {
      if (in.number() == 1) seen += str_cat("u", in.uint64(), " ");
      if (in.number() == 2) seen += str_cat("s", in.sint64(), " ");
      if (in.number() == 3) seen += str_cat("f", in.fixed32(), " ");
      if (in.number() == 4) seen += str_cat("d", in.float64(), " ");
      if (in.number() == 5) seen += str_cat(in.bytes(), " ");
      if (in.number() == 6) in.append_to(more_integers);
      if (in.number() == 7) in.append_to(more_floats);
      if (in.number() == 8) self(self, in.message());
    }
  };
  read(read, ProtoReader(bytes, max_depth));
  for (const std::int64_t value : more_integers) seen += str_cat(value, " ");
  for (const float value : more_floats) seen += str_cat(value, " ");
  return seen;
}

Code code_of_proto_sample(std::string_view bytes) {
  return code_of([&] { return read_proto_sample(bytes); });
}

void skip_all(std::string_view bytes, int max_depth = ProtoReader::default_max_depth) {
  ProtoReader in(bytes, max_depth);
  while (in.next()) {
  }
}

Status status_of_skipping(std::string_view bytes, int max_depth = ProtoReader::default_max_depth) {
  return status_of([&] {
    skip_all(bytes, max_depth);
    return true;
  });
}

}  // namespace

TEST_CASE("what is written is read", "[proto]") {
  CHECK(read_proto_sample(proto_sample()) == "u300 s-3 f7 d2.5 text deep 0 -1 300 -9223372036854775808 0.5 -2 ");
  CHECK(read_proto_sample("").empty());
}

TEST_CASE("each kind of number is read", "[proto]") {
  std::string bytes;
  ProtoWriter out(bytes);
  out.int64(1, -2);
  out.int64(2, -2);
  out.boolean(3, true);
  out.fixed64(4, 5);
  out.float32(5, 1.5f);
  out.uint64(6, (std::uint64_t{1} << 32) + 1);
  ProtoReader in(bytes);
  CHECK(in.number() == 0);
  REQUIRE(in.next());
  CHECK(in.int64() == -2);
  REQUIRE(in.next());
  CHECK(in.int32() == -2);
  REQUIRE(in.next());
  CHECK(in.boolean());
  REQUIRE(in.next());
  CHECK(in.fixed64() == 5);
  REQUIRE(in.next());
  CHECK(in.float32() == 1.5f);
  REQUIRE(in.next());
  CHECK(in.uint32() == 1);
  CHECK_FALSE(in.next());
  CHECK_FALSE(in.next());
}

TEST_CASE("repeated numbers are read packed and one by one, also mixed", "[proto]") {
  std::string bytes;
  ProtoWriter out(bytes);
  out.int64(1, 7);
  out.packed(1, std::span<const std::int64_t>(some_integers));
  out.int64(1, 8);
  out.float32(2, 1);
  out.packed(2, std::span<const float>(some_floats));
  constexpr std::array<double, 2> doubles = {1, 2};
  out.packed(3, std::span<const double>(doubles));
  out.float64(3, 3);
  std::vector<std::int64_t> read_integers;
  std::vector<float> read_floats;
  std::vector<double> read_doubles;
  std::vector<std::uint64_t> one_by_one;
  for (ProtoReader in(bytes); in.next();) {
    if (in.number() == 1) {
      ProtoReader same = in;
      same.each_varint([&](std::uint64_t value) { one_by_one.push_back(value); });
      in.append_to(read_integers);
    }
    if (in.number() == 2) in.append_to(read_floats);
    if (in.number() == 3) in.append_to(read_doubles);
  }
  CHECK(read_integers == std::vector<std::int64_t>{7, 0, -1, 300, some_integers[3], 8});
  CHECK(one_by_one.size() == 6);
  CHECK(read_floats == std::vector<float>{1, 0.5f, -2});
  CHECK(read_doubles == std::vector<double>{1, 2, 3});
  CHECK(code_of([&] {
          ProtoReader in("\x0a\x05\x00\x00\x00\x00\x00"sv);
          in.next();
          in.append_to(read_floats);
          return true;
        }) == Code::data_loss);
}

TEST_CASE("narrow some_integers are the low bits", "[proto]") {
  std::string bytes;
  constexpr std::array<std::int64_t, 2> wide = {-1, (std::int64_t{1} << 32) + 2};
  ProtoWriter(bytes).packed(1, std::span<const std::int64_t>(wide));
  std::vector<std::int32_t> narrow_values;
  std::vector<std::uint32_t> unsigned_values;
  ProtoReader in(bytes);
  REQUIRE(in.next());
  ProtoReader same = in;
  in.append_to(narrow_values);
  same.append_to(unsigned_values);
  CHECK(narrow_values == std::vector<std::int32_t>{-1, 2});
  CHECK(unsigned_values == std::vector<std::uint32_t>{0xffffffff, 2});
}

TEST_CASE("fields that are not read are skipped, groups too", "[proto]") {
  CHECK_NOTHROW(skip_all(proto_sample()));
  // Group 1 holding a varint, a text, and group 2; then field 3.
  constexpr std::string_view groups = "\x0b\x08\x96\x01\x12\x01x\x13\x0d\x01\x02\x03\x04\x14\x0c\x18\x05"sv;
  ProtoReader in(groups);
  REQUIRE(in.next());
  CHECK(in.wire_type() == ProtoWireType::start_group);
  REQUIRE(in.next());
  CHECK(in.number() == 3);
  CHECK(in.offset() == 15);
  CHECK(in.uint64() == 5);
  CHECK_FALSE(in.next());

  CHECK(status_of_skipping("\x0b\x08\x01"sv).code() == Code::data_loss);  // does not end
  CHECK(status_of_skipping("\x0b\x14"sv).code() == Code::data_loss);      // another's end
  CHECK(status_of_skipping("\x0c"sv).code() == Code::data_loss);          // nobody's end
  CHECK(status_of_skipping("\x0b\x0b\x0c\x0c"sv, 2).ok());
  CHECK(status_of_skipping("\x0b\x0b\x0c\x0c"sv, 1).code() == Code::data_loss);
  CHECK(status_of_skipping(std::string(100'000, '\x0b')).code() == Code::data_loss);
}

TEST_CASE("an error names the offset in the outermost message", "[proto]") {
  // Field 1, a message at 2: field 2, a text of 9 bytes, but only one byte is there.
  constexpr std::string_view nested = "\x0a\x03\x12\x09x"sv;
  const Status cut = status_of([&] {
    ProtoReader in(nested);
    in.next();
    ProtoReader inner = in.message();
    inner.next();
    return inner.bytes();
  });
  CHECK(cut.code() == Code::data_loss);
  CHECK(mentions(cut, "offset 3"));
  const Status type = status_of([&] {
    ProtoReader in(nested);
    in.next();
    ProtoReader inner = in.message();
    inner.next();
    return inner.uint64();
  });
  CHECK(type.code() == Code::data_loss);
  CHECK(mentions(type, "field 2 at offset 2"));
}

TEST_CASE("an error of a message as a whole, before the first field, names where it begins", "[proto]") {
  ProtoReader in("\x08\x01\x12\x02\x08\x01"sv);
  REQUIRE(in.next());
  REQUIRE(in.next());
  const ProtoReader inner = in.message();
  CHECK(inner.offset() == 4);
  const Status status = status_of([&] {
    inner.fail("nothing good");
    return true;
  });
  CHECK(mentions(status, "nothing good, in the message at offset 4"));
}

TEST_CASE("malformed tags and numbers are DataLoss", "[proto]") {
  CHECK(status_of_skipping("\x00\x00"sv).code() == Code::data_loss);                  // field 0
  CHECK(status_of_skipping("\x0e"sv).code() == Code::data_loss);                      // wire type 6
  CHECK(status_of_skipping("\x0f"sv).code() == Code::data_loss);                      // wire type 7
  CHECK(status_of_skipping("\x80\x80\x80\x80\x10\x00"sv).code() == Code::data_loss);  // field 2^29
  CHECK(status_of_skipping("\xf8\xff\xff\xff\x0f\x00"sv).ok());                       // field 2^29 - 1
  CHECK(status_of_skipping("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv).code() == Code::data_loss);
  CHECK(status_of_skipping("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).code() == Code::data_loss);
}

TEST_CASE("messages nested deeper than the limit are DataLoss", "[proto]") {
  CHECK(code_of([] { return read_proto_sample(proto_sample(), 2); }) == Code::ok);
  CHECK(code_of([] { return read_proto_sample(proto_sample(), 1); }) == Code::data_loss);
}

TEST_CASE("a value is read once and as what it is", "[proto]") {
  ProtoReader in("\x08\x01"sv);
  CHECK(code_of([&] { return in.uint64(); }) == Code::data_loss);
  REQUIRE(in.next());
  CHECK(code_of([&] { return in.bytes(); }) == Code::data_loss);
  CHECK(code_of([&] { return in.message().next(); }) == Code::data_loss);
  CHECK(code_of([&] { return in.fixed32(); }) == Code::data_loss);
  CHECK(in.uint64() == 1);
  CHECK(code_of([&] { return in.uint64(); }) == Code::data_loss);
}

TEST_CASE("a message cut at any byte is a shorter message or DataLoss", "[proto]") {
  const std::string whole = proto_sample();
  std::vector<std::size_t> ends{0};
  for (ProtoReader in(whole); in.next();) ends.push_back(in.offset());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A separate copy, so that AddressSanitizer sees a read past the end.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const bool is_between_fields = std::find(ends.begin(), ends.end(), size) != ends.end();
    CHECK(code_of_proto_sample({cut.data(), cut.size()}) == (is_between_fields ? Code::ok : Code::data_loss));
  }
}

TEST_CASE("flipped bits give a value or DataLoss, never more", "[proto]") {
  const std::string whole = proto_sample();
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Code code = code_of_proto_sample(damaged);
    if (code != Code::ok && code != Code::data_loss) FAIL("bit " << bit);
  }
  std::mt19937 random(20240602);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
    const Code code = code_of_proto_sample(damaged);
    if (code != Code::ok && code != Code::data_loss) FAIL("round " << round);
  }
}
