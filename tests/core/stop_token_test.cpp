#include <dflow/core/stop_token.hpp>

#include "catch.hpp"

using namespace dflow;

TEST_CASE("a stop request cancels the linked source", "[stop_token]") {
  std::stop_source stop;
  CancellationSource source;
  const StopTokenLink link(stop.get_token(), source);
  CHECK_FALSE(source.is_cancelled());
  stop.request_stop();
  CHECK(source.token().status().code() == Code::cancelled);
}

TEST_CASE("a link that is gone cancels nothing", "[stop_token]") {
  std::stop_source stop;
  CancellationSource source;
  { const StopTokenLink link(stop.get_token(), source); }
  stop.request_stop();
  CHECK_FALSE(source.is_cancelled());
}

TEST_CASE("cancelling requests stop", "[stop_token]") {
  std::stop_source stop;
  CancellationSource source;
  const CancellationRegistration registration = request_stop_on_cancel(source.token(), stop);
  source.cancel();
  CHECK(stop.stop_requested());
}
