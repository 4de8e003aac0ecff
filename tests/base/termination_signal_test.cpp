#include <dflow/base/termination_signal.hpp>

#include "catch.hpp"

#include <signal.h>
#include <memory>

using dflow::TerminationSignal;

TEST_CASE("the last one that notes SIGTERM puts back what was there, in whatever order they go") {
  struct sigaction ignore {
  }, before{}, now{};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGTERM, &ignore, &before) == 0);
  for (int round = 0; round < 3; ++round) {
    auto first = std::make_unique<TerminationSignal>();
    ::raise(SIGTERM);
    auto second = std::make_unique<TerminationSignal>();
    CHECK(first->has_come());
    CHECK(!second->has_come());
    first.reset();
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    CHECK(second->has_come());
    second.reset();
    REQUIRE(::sigaction(SIGTERM, nullptr, &now) == 0);
    CHECK(now.sa_handler == SIG_IGN);
    ::raise(SIGTERM);  // ignored
  }
  ::sigaction(SIGTERM, &before, nullptr);
}
