#include <dflow/core/bfloat16.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

using dflow::BFloat16;
using BFloat16Limits = std::numeric_limits<BFloat16>;

TEST_CASE("every bfloat16 that is no NaN survives the way to float and back", "[bfloat16]") {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const BFloat16 value = BFloat16::from_bits(static_cast<std::uint16_t>(b));
    if (std::isnan(float(value))) {
      CHECK(std::isnan(float(BFloat16(float(value)))));
    } else if (BFloat16(float(value)).bits() != b) {
      FAIL("bits " << b);
    }
  }
}

TEST_CASE("a float rounds to the nearest bfloat16, ties to even", "[bfloat16]") {
  CHECK(BFloat16(1.0f).bits() == 0x3f80);
  CHECK(BFloat16(0x1.01p0f).bits() == 0x3f80);
  CHECK(BFloat16(0x1.010002p0f).bits() == 0x3f81);
  CHECK(BFloat16(0x1.03p0f).bits() == 0x3f82);
  CHECK(BFloat16(-0.0f).bits() == 0x8000);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);
  CHECK(BFloat16(std::numeric_limits<float>::denorm_min()).bits() == 0x0000);
  CHECK(BFloat16(0x1p-133f).bits() == 0x0001);
  // A NaN with its payload in the lower half must not become infinity.
  const auto nan = __builtin_bit_cast(float, std::uint32_t{0x7f800001u});
  CHECK(std::isnan(float(BFloat16(nan))));
}

TEST_CASE("bfloat16 arithmetic, comparison and limits", "[bfloat16]") {
  const BFloat16 a(1.5f);
  const BFloat16 b(2);
  CHECK(float(a + b) == 3.5f);
  CHECK(float(a / b) == 0.75f);
  CHECK(float(-a) == -1.5f);
  CHECK(BFloat16(256.0f) + BFloat16(1.0f) == BFloat16(256.0f));
  CHECK(a < b);
  CHECK(float(BFloat16Limits::max()) == 0x1.fep127f);
  CHECK(float(BFloat16Limits::epsilon()) == 0x1p-7f);
  CHECK(float(BFloat16Limits::min()) == std::numeric_limits<float>::min());
  CHECK(std::isnan(float(BFloat16Limits::quiet_NaN())));
  static_assert(BFloat16(2.5f).bits() == 0x4020);
}
