#include <dflow/base/philox.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

using namespace dflow;

// Random123 (Salmon et al., D. E. Shaw Research), kat_vectors, "philox4x32 10".
TEST_CASE("Philox 4x32-10 gives the published answers, also at compile time", "[philox]") {
  static_assert(Philox{{0, 0}}({{0, 0, 0, 0}}) == PhiloxWords{{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
  CHECK(Philox{{0xffffffffu, 0xffffffffu}}({{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}}) ==
        PhiloxWords{{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
  CHECK(Philox{{0xa4093822u, 0x299f31d0u}}({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}) ==
        PhiloxWords{{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});
}

TEST_CASE("every philox4x32 10 line of the answer file holds", "[philox]") {
  const char* root = std::getenv("DFLOW_DATA");
  if (root == nullptr) {
    WARN("DFLOW_DATA is not set: random123/philox_kat.txt is not read");
    return;
  }
  std::ifstream file(std::string(root) + "/random123/philox_kat.txt");
  REQUIRE(file);
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    int rounds = 0;
    fields >> name >> rounds;
    if (name != "philox4x32" || rounds != 10) continue;
    PhiloxWords counter{};
    Philox generator{};
    PhiloxWords expected{};
    fields >> std::hex;
    for (auto& word : counter.word) fields >> word;
    for (auto& word : generator.key) fields >> word;
    for (auto& word : expected.word) fields >> word;
    REQUIRE(fields);
    CHECK(generator(counter) == expected);
    ++lines;
  }
  CHECK(lines >= 3);
}

TEST_CASE("a counter carries through all of its 128 bits", "[philox]") {
  CHECK(advance({{0xffffffffu, 0, 0, 0}}, 1) == PhiloxWords{{0, 1, 0, 0}});
  CHECK(advance({{0xffffffffu, 0xffffffffu, 0xffffffffu, 4}}, 1) == PhiloxWords{{0, 0, 0, 5}});
  CHECK(advance({{5, 0, 0, 0}}, 0xffffffffffffffffu) == PhiloxWords{{4, 0, 1, 0}});
}

TEST_CASE("a stream that skips is where one that drew is", "[philox]") {
  auto drawn = PhiloxStream::from_seeds(0x123456789abcdef0u, 42);
  CHECK(drawn.generator.key[0] == 0x9abcdef0u);
  CHECK(drawn.generator.key[1] == 0x12345678u);
  CHECK(drawn.counter == PhiloxWords{{0, 0, 42, 0}});
  auto skipped = drawn;
  for (int i = 0; i < 1000; ++i) drawn.next();
  skipped.skip(1000);
  CHECK(drawn.next() == skipped.next());
}

TEST_CASE("uniform floats have the bits of a mantissa trick", "[philox]") {
  const auto by_bits = [](std::uint32_t word) {
    const std::uint32_t bits = (std::uint32_t{127} << 23) | (word & 0x7fffffu);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value - 1.0f;
  };
  PhiloxStream stream = PhiloxStream::from_seeds(1, 2);
  for (int i = 0; i < 1000; ++i) {
    const PhiloxWords words = stream.next();
    for (const std::uint32_t word : words.word) {
      const float value = uniform_float(word);
      if (value != by_bits(word) || value < 0.0f || value >= 1.0f) FAIL("word " << word);
    }
  }
  CHECK(uniform_float(0xff800000u) == 0.0f);
  CHECK(uniform_float(0x007fffffu) == 1.0f - 1.0f / 8388608.0f);
  CHECK(uniform_double(0, 0) == 0.0);
  CHECK(uniform_double(0xfffu << 20 | 0x80000u, 0) == 0.5);
  CHECK(uniform_double(0xffffffffu, 0xffffffffu) == 1.0 - std::ldexp(1.0, -52));
}

TEMPLATE_TEST_CASE("normal values have mean 0, variance 1 and are finite", "[philox]", float, double) {
  PhiloxStream stream = PhiloxStream::from_seeds(301, 17);
  double sum = 0;
  double squares = 0;
  double products = 0;
  constexpr int pairs = 100000;
  for (int i = 0; i < pairs; ++i) {
    const PhiloxWords words = stream.next();
    NormalPair<TestType> pair;
    if constexpr (std::is_same_v<TestType, float>) {
      pair = normal_pair(words[0], words[1]);
    } else {
      pair = normal_pair(words);
    }
    sum += pair.first + pair.second;
    squares += pair.first * pair.first + pair.second * pair.second;
    products += pair.first * pair.second;
  }
  CHECK(std::abs(sum / (2 * pairs)) < 0.01);
  CHECK(squares / (2 * pairs) == Catch::Approx(1.0).margin(0.015));
  CHECK(std::abs(products / pairs) < 0.015);
  CHECK(std::isfinite(normal_pair(0, 0).first));
  CHECK(std::isfinite(normal_pair(PhiloxWords{}).second));
}
