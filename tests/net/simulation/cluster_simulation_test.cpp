#include <dflow/base/str_cat.hpp>

#include "catch.hpp"
#include "simulated_training.hpp"
#include "support/sanitized.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace dflow;
using dflow::testing::simulate_stale_training;
using dflow::testing::simulate_training;
using dflow::testing::TrainingOptions;
using dflow::testing::TrainingOutcome;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// DFLOW_SIMULATION_SEEDS: the number of seeds, from DFLOW_SIMULATION_FIRST_SEED on. Each test runs every second seed.
// DFLOW_SIMULATION_LOG: prints the events.
void simulate_seeds(TrainingOutcome (*simulate)(std::uint64_t seed, const TrainingOptions& options), bool is_odd) {
  const std::uint64_t first = number_from("DFLOW_SIMULATION_FIRST_SEED", 1);
  constexpr std::uint64_t usual_count = dflow::testing::is_sanitized ? 6 : 100;
  const std::uint64_t count = number_from("DFLOW_SIMULATION_SEEDS", usual_count);
  TrainingOptions options;
  options.is_verbose = std::getenv("DFLOW_SIMULATION_LOG") != nullptr;
  TrainingOutcome sum;
  std::uint64_t num_simulated = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    if ((seed % 2 == 1) != is_odd) continue;
    ++num_simulated;
    const TrainingOutcome outcome = simulate(seed, options);
    INFO("DFLOW_SIMULATION_FIRST_SEED=" << seed << " DFLOW_SIMULATION_SEEDS=1 DFLOW_SIMULATION_LOG=1 shows it");
    CHECK(outcome.failure == "");
    sum.num_acknowledged += outcome.num_acknowledged;
    sum.num_failed += outcome.num_failed;
    sum.num_sessions += outcome.num_sessions;
    sum.num_crashes += outcome.num_crashes;
    sum.num_events += outcome.num_events;
  }
  if (count > usual_count || options.is_verbose) {
    std::cout << num_simulated << " seeds: " << sum.num_acknowledged << " steps acknowledged, " << sum.num_failed
              << " runs failed, " << sum.num_sessions << " sessions, " << sum.num_crashes << " crashes, "
              << sum.num_events << " events\n";
  }
  CHECK((sum.num_acknowledged > 0 || num_simulated == 0));
}

}  // namespace

TEST_CASE("a cluster trains on through crashes, partitions and lost connections, and loses no update",
          "[net][simulation][one_thread]") {
  simulate_seeds(simulate_training, true);
}

TEST_CASE("workers with bounded staleness train on through the same, and none gets ahead by more than the bound",
          "[net][simulation][one_thread]") {
  simulate_seeds(simulate_stale_training, false);
}

TEST_CASE("a simulated cluster does the same for the same seed", "[net][simulation][one_thread][long]") {
  const TrainingOutcome first = simulate_training(3), second = simulate_training(3), other = simulate_training(4);
  CHECK(first.trace_hash == second.trace_hash);
  CHECK(first.num_events == second.num_events);
  CHECK(first.num_acknowledged == second.num_acknowledged);
  CHECK(first.trace_hash != other.trace_hash);
  CHECK(simulate_stale_training(3).trace_hash == simulate_stale_training(3).trace_hash);
}
