// The training programs of simulated clusters. DFLOW_SIMULATION_LOG and seeds: cluster_simulation_test.cpp.
#pragma once

#include "simulated_cluster.hpp"

#include <cstdint>

namespace dflow::testing {

/// 1 to 4 workers count on 1 to 3 parameter servers: no update is lost or done twice, and no tensor is another's.
TrainingOutcome simulate_training(std::uint64_t seed, const TrainingOptions& options = {});

/// 2 to 4 workers train with bounded staleness on 1 or 2 parameter servers, leave and come back. No worker gets
/// further ahead of the slowest worker than the bound.
TrainingOutcome simulate_stale_training(std::uint64_t seed, const TrainingOptions& options = {});

}  // namespace dflow::testing
