#include <dflow/net/protocol/clock_offset.hpp>

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

using dflow::net::ClockOffset;
using dflow::net::RoundTrip;

namespace {

constexpr std::int64_t second = 1'000'000'000;

/// The times that both peers note of a trip at true time `at`, when the peer's clock is `ahead` of this one.
RoundTrip trip_at(std::int64_t at, std::int64_t there, std::int64_t held, std::int64_t back, std::int64_t ahead) {
  return {at, at + there + ahead, at + there + held + ahead, at + there + held + back};
}

}  // namespace

TEST_CASE("an offset is that of NTP, wrong by half of what the ways differ") {
  ClockOffset offset;
  const RoundTrip even = trip_at(0, 100, 5000, 100, -60 * second);
  CHECK(offset.during(even) == -60 * second);
  CHECK(offset.during(trip_at(0, 100, 5000, 300, 7)) == 7 - 100);
  CHECK(offset.during(trip_at(0, 300, 5000, 100, 7)) == 7 + 100);
}

TEST_CASE("of several trips the shortest says the offset") {
  ClockOffset offset;
  offset.add(trip_at(0, 900, 0, 100, 50));
  offset.add(trip_at(2000, 10, 5000, 10, 50));
  offset.add(trip_at(9000, 700, 0, 100, 50));
  CHECK(offset.during(trip_at(10'000, 500, 100, 900, 50)) == 50);
}

TEST_CASE("a trip that is long ago is trusted less than one that took longer") {
  ClockOffset offset;
  offset.add(trip_at(0, 0, 0, 0, 0));
  // Since then the clocks have parted by 10 us, and this trip is uncertain by 5 us.
  const RoundTrip late = trip_at(second, 6'000, 0, 4'000, 10'000);
  CHECK(offset.during(late) == 11'000);
  // A trip that is uncertain by 30 us is trusted less than the old trip after a second of drift.
  CHECK(offset.during(trip_at(second, 10'000, 0, 50'000, 2'000)) == 0);
}

TEST_CASE("only the last trips count") {
  ClockOffset offset;
  offset.add(trip_at(0, 0, 0, 0, 100));
  for (std::size_t i = 0; i < ClockOffset::num_kept; ++i) offset.add(trip_at(0, 60, 0, 40, 100));
  CHECK(offset.during(trip_at(0, 60, 0, 40, 100)) == 110);
}

TEST_CASE("nothing begins before it was asked for or ends after its reply") {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  ClockOffset offset;
  std::int64_t now = 0;
  for (int i = 0; i < 10'000; ++i) {
    now += below(2 * second);
    const std::int64_t ahead = 3600 * second + now / 100'000;  // 10 millionths fast
    const RoundTrip trip = trip_at(now, below(1'000'000), below(second), below(1'000'000), ahead);
    offset.add(trip);
    const std::int64_t best = offset.during(trip);
    REQUIRE(trip.came - best >= trip.asked);
    REQUIRE(trip.answered - best <= trip.returned);
    REQUIRE(std::abs(best - ahead) <= 520'000);
  }
}

TEST_CASE("what a clock gains in a long step is shared between its begin and its end") {
  // By the peer's clock, an hour lasts 100 ms longer.
  const RoundTrip trip{0, 50, 3600 * second + 100'000'000, 3600 * second + 100};
  const std::int64_t offset = ClockOffset().during(trip);
  CHECK(offset > 0);
  CHECK(offset < 100'000'000);
}

TEST_CASE("a peer may say any times") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  ClockOffset offset;
  for (const std::int64_t came : {least, std::int64_t{0}, most}) {
    for (const std::int64_t answered : {least, std::int64_t{0}, most}) {
      const RoundTrip trip{1, came, answered, 2};
      offset.add(trip);
      static_cast<void>(offset.during(trip));
    }
  }
  SUCCEED();
}
