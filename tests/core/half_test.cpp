#include <dflow/core/half.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

using dflow::Half;
using HalfLimits = std::numeric_limits<Half>;

namespace {
std::uint16_t bits(double value) { return Half(static_cast<float>(value)).bits(); }
}  // namespace

TEST_CASE("every half that is no NaN survives the way to float and back", "[half]") {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(b));
    if (std::isnan(float(half))) {
      CHECK((b & 0x7fffu) > 0x7c00u);
      CHECK(std::isnan(float(Half(float(half)))));
      CHECK(std::signbit(float(half)) == ((b & 0x8000u) != 0));
    } else if (Half(float(half)).bits() != b) {
      FAIL("bits " << b);
    }
  }
}

TEST_CASE("a float rounds to the nearest half, ties to even", "[half]") {
  // Each float between two neighbours goes to the closer one; the middle to the even one.
  for (std::uint16_t b = 0; b < 0x7bff; ++b) {
    const double low = float(Half::from_bits(b));
    const double high = float(Half::from_bits(static_cast<std::uint16_t>(b + 1)));
    const auto middle = static_cast<float>((low + high) / 2);
    const auto even = static_cast<std::uint16_t>(b % 2 == 0 ? b : b + 1);
    if (bits(middle) != even || bits(std::nextafter(middle, 0.0f)) != b ||
        bits(std::nextafter(middle, 1e9f)) != b + 1) {
      FAIL("bits " << b);
    }
  }
}

TEST_CASE("known values, subnormals, overflow and signs", "[half]") {
  CHECK(bits(0.0) == 0x0000);
  CHECK(bits(-0.0) == 0x8000);
  CHECK(bits(1.0) == 0x3c00);
  CHECK(bits(-2.0) == 0xc000);
  CHECK(bits(1.0 / 3.0) == 0x3555);
  CHECK(bits(65504.0) == 0x7bff);
  CHECK(bits(65519.996) == 0x7bff);
  CHECK(bits(65520.0) == 0x7c00);
  CHECK(bits(-1e30) == 0xfc00);
  CHECK(bits(0x1p-24) == 0x0001);
  CHECK(bits(0x1p-25) == 0x0000);
  CHECK(bits(0x1.8p-25) == 0x0001);
  CHECK(bits(1e-40) == 0x0000);
  CHECK(bits(std::numeric_limits<double>::infinity()) == 0x7c00);
  CHECK(std::isnan(float(Half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("half arithmetic is float arithmetic, rounded", "[half]") {
  const Half a(1.5f);
  const Half b(0.25f);
  CHECK(float(a + b) == 1.75f);
  CHECK(float(a - b) == 1.25f);
  CHECK(float(a * b) == 0.375f);
  CHECK(float(a / b) == 6.0f);
  CHECK(float(-a) == -1.5f);
  CHECK(Half(2048.0f) + Half(1.0f) == Half(2048.0f));
  Half sum(1);
  sum += b;
  sum *= a;
  CHECK(float(sum) == 1.875f);
  CHECK(a > b);
  CHECK(Half(0.0f) == Half(-0.0f));
  CHECK_FALSE(HalfLimits::quiet_NaN() == HalfLimits::quiet_NaN());
  CHECK(a * 2.0f == 3.0f);
  static_assert(Half(2.5f).bits() == 0x4100 && float(Half(2.5f)) == 2.5f);
}

TEST_CASE("the limits of half", "[half]") {
  CHECK(float(HalfLimits::max()) == 65504.0f);
  CHECK(float(HalfLimits::lowest()) == -65504.0f);
  CHECK(float(HalfLimits::min()) == 0x1p-14f);
  CHECK(float(HalfLimits::denorm_min()) == 0x1p-24f);
  CHECK(float(HalfLimits::epsilon()) == 0x1p-10f);
  CHECK(std::isinf(float(HalfLimits::infinity())));
  CHECK(std::isnan(float(HalfLimits::signaling_NaN())));
}
