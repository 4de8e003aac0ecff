#include <dflow/net/tasks/backoff.hpp>

#include "catch.hpp"

#include <chrono>
#include <cstdint>
#include <limits>

using namespace dflow;
using namespace dflow::net;

TEST_CASE("pauses double up to a limit, and are shortened by up to half", "[net]") {
  using std::chrono::milliseconds;
  Backoff whole(milliseconds(20), milliseconds(100));
  for (const int wanted : {20, 40, 80, 100, 100}) CHECK(whole.next(0) == milliseconds(wanted));
  Backoff shortened(milliseconds(20), milliseconds(100));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const int wanted : {10, 20, 40, 50, 50}) {
    const Duration pause = shortened.next(most);
    CHECK(pause >= milliseconds(wanted));
    CHECK(pause <= milliseconds(wanted) + std::chrono::nanoseconds(1));
  }
  Backoff between(milliseconds(20), milliseconds(100));
  CHECK(between.next(std::uint64_t{1} << 63) == milliseconds(15));
}
