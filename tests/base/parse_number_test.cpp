#include <dflow/base/text/parse_number.hpp>

#include "catch.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

using namespace dflow;

// The texts that are numbers, and their values, were tried with StringToNumber of TensorFlow 2.21.0;
// tests/oracle/strings.json has more.

namespace {
template <class T>
std::optional<T> number_of(std::string_view text) {
  T value = 77;
  if (parse_number(text, value)) return value;
  CHECK(value == 77);
  return std::nullopt;
}
}  // namespace

TEST_CASE("a number is read whole, and the spaces around it", "[parse_number]") {
  CHECK(number_of<float>(" 1.5\n") == 1.5f);
  CHECK(number_of<double>("-0x1.8p1") == -3.0);
  CHECK(number_of<std::int32_t>("\t+12 ") == 12);
  CHECK(number_of<std::int64_t>("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"", " ", "1 2", "1x", "++1", "+-1", "-+1", "0x", "0xinf", "0x-1", "e5", ".", "infi"}) {
    CHECK_FALSE(number_of<float>(text));
    CHECK_FALSE(number_of<double>(text));
    CHECK_FALSE(number_of<std::int32_t>(text));
  }
  for (const char* text : {"1.0", "1e3", "0x10", "2147483648", "-2147483649", "nan"})
    CHECK_FALSE(number_of<std::int32_t>(text));
  CHECK_FALSE(number_of<std::int64_t>("9223372036854775808"));
}

TEST_CASE("a float out of range is infinite or zero", "[parse_number]") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(number_of<double>("1e400") == infinity);
  CHECK(number_of<double>("-1" + std::string(400, '0')) == -infinity);
  CHECK(number_of<double>("1" + std::string(400, '0') + "e-399") == 10.0);
  CHECK(number_of<double>("0." + std::string(400, '0') + "1e401") == 1.0);
  CHECK(number_of<double>("0." + std::string(400, '0') + "1") == 0.0);
  CHECK(number_of<double>("1e-99999999999999999999") == 0.0);
  CHECK(number_of<double>("1e+99999999999999999999") == infinity);
  CHECK(number_of<double>("0x1p99999") == infinity);
  CHECK(number_of<double>("0x1p-99999") == 0.0);
  CHECK(std::signbit(*number_of<float>("-1e-60")));
  CHECK(std::isinf(*number_of<float>("1e60")));
  CHECK(std::isnan(*number_of<float>("-NaN")));
}
