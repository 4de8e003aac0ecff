#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <cstdint>
#include <limits>
#include <vector>

using namespace dflow;

namespace {
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::int64_t product(std::vector<std::int64_t> extents) { return checked_product(extents); }
}  // namespace

TEST_CASE("sums and products that fit are exact, also in constant expressions", "[checked]") {
  static_assert(checked_add<std::int64_t>(2, 3) == 5);
  static_assert(checked_mul<std::size_t>(6, 7) == 42);
  static_assert(checked_sub<std::int64_t>(2, 3) == -1);
  static_assert(try_add<std::int64_t>(largest, 1) == std::nullopt);
  CHECK(checked_add(largest - 1, 1) == largest);
}

TEST_CASE("sums and products that do not fit throw InvalidArgument", "[checked]") {
  CHECK_THROWS_AS(checked_add(largest, 1), Error);
  CHECK_THROWS_AS(checked_mul(largest, 2), Error);
  CHECK_THROWS_AS(checked_sub(std::size_t{0}, 1), Error);
  CHECK_FALSE(try_mul(largest, 2).has_value());
  CHECK_FALSE(try_sub(std::uint32_t{1}, 2).has_value());
  try {
    (void)checked_mul(largest, 3);
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    CHECK(error.status().message() == "integer overflow in 9223372036854775807 * 3");
  }
}

TEST_CASE("the product of extents", "[checked]") {
  CHECK(product({}) == 1);
  CHECK(product({2, 3, 4}) == 24);
  CHECK(product({largest}) == largest);
  CHECK(product({largest, largest, 0}) == 0);
  CHECK_THROWS_AS(product({largest, 2}), Error);
  CHECK_THROWS_AS(product({0, -1}), Error);
  CHECK_THROWS_WITH(product({4, -1}), Catch::Matchers::Contains("[4,-1]"));
}

TEST_CASE("narrow keeps the value or throws", "[checked]") {
  static_assert(narrow<std::int8_t>(-128) == -128);
  CHECK(narrow<std::uint64_t>(5) == 5);
  CHECK(narrow<int>(std::size_t{7}) == 7);
  CHECK_THROWS_AS(narrow<std::int8_t>(128), Error);
  CHECK_THROWS_AS(narrow<std::uint64_t>(-1), Error);
  CHECK_THROWS_AS(narrow<std::int64_t>(std::numeric_limits<std::uint64_t>::max()), Error);
  CHECK_THROWS_WITH(narrow<std::uint8_t>(256), Catch::Matchers::Contains("256 does not fit in uint8"));
  CHECK_THROWS_WITH(narrow<std::int32_t>(largest), Catch::Matchers::Contains("int32"));
}
