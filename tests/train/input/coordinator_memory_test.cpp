#include <dflow/train/input/coordinator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/failing_new.hpp"

#include <atomic>

using dflow::Code;
using dflow::train::Coordinator;

TEST_CASE("A coordinator waits for no thread for which there was no memory") {
  for (int n = 1;; ++n) {
    Coordinator coordinator;
    std::atomic<int> runs{0};
    failing_new::fails_in = n;
    bool is_refused = false;
    try {
      coordinator.start("worker", [&runs] { ++runs; });
    } catch (const std::bad_alloc&) {
      is_refused = true;
    } catch (const dflow::Error& error) {
      is_refused = error.code() == Code::resource_exhausted;
    }
    const bool has_failed = failing_new::fails_in == 0;
    failing_new::fails_in = 0;
    CHECK(is_refused == has_failed);
    if (is_refused) REQUIRE(coordinator.running_threads().empty());
    coordinator.join();
    CHECK(runs == (has_failed ? 0 : 1));
    if (!has_failed) break;
  }
}
