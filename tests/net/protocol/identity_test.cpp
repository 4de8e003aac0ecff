#include <dflow/net/protocol/identity.hpp>

#include "catch.hpp"

#include <chrono>
#include <cstdint>

using namespace dflow;
using namespace dflow::net;
using namespace std::chrono_literals;

TEST_CASE("of two starts the later one has the higher incarnation, whatever was drawn", "[net]") {
  const auto at = [](Duration since_1970) { return Clock::wall_time_point(since_1970); };
  const std::uint64_t most = ~std::uint64_t{0};
  for (const Duration now : {Duration(0s), Duration(1s), Duration(1'700'000'000s), Duration(4'000'000'000s)}) {
    CHECK(incarnation_at(at(now), most) < incarnation_at(at(now + 1us), 0));
    CHECK(incarnation_at(at(now), 1) != incarnation_at(at(now), 2));
    CHECK(incarnation_at(at(now), 0) != 0);
  }
}

TEST_CASE("an incarnation says when it was made", "[net]") {
  const Clock::wall_time_point now(Duration(1'700'000'000s));
  CHECK(time_until_start(incarnation_at(now, ~std::uint64_t{0}), now) == 0s);
  CHECK(time_until_start(incarnation_at(now + 5min, 7), now) == 5min);
  CHECK(time_until_start(incarnation_at(now - 1h, 7), now) == -1h);
  CHECK(time_until_start(1, now) == -Duration(1'700'000'000s));
  CHECK(time_until_start(~std::uint64_t{0}, now) > 24h * 365 * 80);
}
