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
