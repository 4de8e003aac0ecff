#include <dflow/base/str_cat.hpp>

#include "catch.hpp"
#include "simulated_cluster.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace dflow;
using dflow::testing::simulate_training;
using dflow::testing::TrainingOutcome;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

// DFLOW_SIMULATION_SEEDS: how many, from DFLOW_SIMULATION_FIRST_SEED on. DFLOW_SIMULATION_LOG: says what happens.
TEST_CASE("a cluster trains on through crashes, partitions and lost connections, and loses no update",
          "[net][simulation]") {
  const std::uint64_t first = number_from("DFLOW_SIMULATION_FIRST_SEED", 1);
#if defined(__SANITIZE_THREAD__)  // all of it runs in one thread
  constexpr std::uint64_t usual_count = 3;
#else
  constexpr std::uint64_t usual_count = 50;
#endif
  const std::uint64_t count = number_from("DFLOW_SIMULATION_SEEDS", usual_count);
  dflow::testing::TrainingOptions options;
  options.is_verbose = std::getenv("DFLOW_SIMULATION_LOG") != nullptr;
  std::int64_t acknowledged = 0, failed = 0, sessions = 0, crashes = 0;
  std::uint64_t events = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const TrainingOutcome outcome = simulate_training(seed, options);
    INFO("DFLOW_SIMULATION_FIRST_SEED=" << seed << " DFLOW_SIMULATION_SEEDS=1 DFLOW_SIMULATION_LOG=1 shows it");
    CHECK(outcome.failure == "");
    acknowledged += outcome.num_acknowledged;
    failed += outcome.num_failed;
    sessions += outcome.num_sessions;
    crashes += outcome.num_crashes;
    events += outcome.num_events;
  }
  if (count > usual_count || options.is_verbose) {
    std::cout << count << " seeds: " << acknowledged << " steps acknowledged, " << failed << " runs failed, "
              << sessions << " sessions, " << crashes << " crashes, " << events << " events\n";
  }
  CHECK(acknowledged > 0);
}

TEST_CASE("a simulated cluster does the same for the same seed", "[net][simulation]") {
  const TrainingOutcome first = simulate_training(3), second = simulate_training(3), other = simulate_training(4);
  CHECK(first.trace_hash == second.trace_hash);
  CHECK(first.num_events == second.num_events);
  CHECK(first.num_acknowledged == second.num_acknowledged);
  CHECK(first.trace_hash != other.trace_hash);
}
