// Parameter servers and workers that train in a simulation, with what goes wrong on the way, all from one seed.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::testing {

/// What has happened in one simulation, as seen from outside of its processes, and what of it must not have.
class TrainingFacts {
 public:
  explicit TrainingFacts(net::Simulation& simulation) : simulation_(simulation) {}

  /// By a kernel that runs in each task of a step, with what it was fed.
  void witness(const std::string& device, std::uint64_t incarnation, std::uint64_t step, std::int64_t attempt);
  /// A worker has added one to a counter, which it then found to be `value`; when it began, it had `least`.
  void acknowledge(int ps, std::int64_t value, std::int64_t least, const std::string& by);
  void fail(std::string what);
  const std::string& failure() const noexcept { return failure_; }
  void log(std::string_view line);

  std::map<int, std::int64_t> acknowledged;  ///< the most that anybody has seen, by ps
  std::vector<Clock::time_point> last_step;  ///< of each worker that was acknowledged
  std::int64_t next_attempt = 1;
  std::int64_t next_epoch = 1;
  std::int64_t num_acknowledged = 0, num_failed = 0, num_sessions = 0, num_crashes = 0;
  std::map<std::string, std::int64_t> errors;  ///< that workers were told, by code
  bool is_verbose = false;

 private:
  net::Simulation& simulation_;
  std::string failure_;
  std::set<std::pair<std::uint64_t, std::int64_t>> seen_;  ///< what an incarnation has run
  std::map<std::int64_t, std::uint64_t> steps_;            ///< of attempts
  std::map<std::uint64_t, std::int64_t> attempts_;         ///< of steps
};

struct TrainingOutcome {
  std::string failure;  ///< empty: none
  std::uint64_t trace_hash = 0;
  std::uint64_t num_events = 0;
  std::int64_t num_acknowledged = 0, num_failed = 0, num_sessions = 0, num_crashes = 0;
  std::map<std::string, std::int64_t> errors;
};

struct TrainingOptions {
  /// Faults happen in the first part, nothing in the rest.
  Duration faults = std::chrono::seconds(140);
  Duration calm = std::chrono::seconds(60);
  bool is_verbose = false;
};

/// Trains on 1 to 3 parameter servers with 1 to 4 workers.
TrainingOutcome simulate_training(std::uint64_t seed, const TrainingOptions& options = {});

}  // namespace dflow::testing
