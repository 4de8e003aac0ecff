#include <dflow/base/str_cat.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using dflow::str_cat;

TEST_CASE("text and numbers are put together", "[str_cat]") {
  CHECK(str_cat() == "");
  CHECK(str_cat("axis ", 3, " of rank ", std::size_t{2}) == "axis 3 of rank 2");
  CHECK(str_cat(std::string("a"), std::string_view("b"), 'c', "d") == "abcd");
  CHECK(str_cat(true, '/', false) == "true/false");
}

TEST_CASE("integers print to their limits", "[str_cat]") {
  CHECK(str_cat(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(str_cat(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(str_cat(std::int8_t{-5}, ",", std::uint8_t{200}) == "-5,200");
}

TEST_CASE("floating-point numbers print in the shortest form that reads back", "[str_cat]") {
  CHECK(str_cat(0.1f) == "0.1");
  CHECK(str_cat(0.1) == "0.1");
  CHECK(str_cat(1.0) == "1");
  CHECK(str_cat(-std::numeric_limits<double>::denorm_min()) == "-5e-324");
  CHECK(str_cat(std::numeric_limits<float>::infinity()) == "inf");
}

TEST_CASE("NaN prints without a sign", "[str_cat]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double nan : {none, std::copysign(none, -1.0)}) {
    CHECK(str_cat(nan, " ", static_cast<float>(nan)) == "nan nan");
  }
  CHECK(str_cat(-std::numeric_limits<double>::infinity(), " ", -0.0) == "-inf -0");
}
