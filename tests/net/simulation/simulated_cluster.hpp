// Parameter servers and workers in a simulation, with faults on the way, all from one seed.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::testing {

struct TrainingOptions {
  /// Faults happen in the first part, nothing in the rest.
  Duration faults = std::chrono::seconds(140);
  Duration calm = std::chrono::seconds(60);
  bool is_verbose = false;
};

struct TrainingOutcome {
  std::string failure;  ///< empty: none
  std::uint64_t trace_hash = 0;
  std::uint64_t num_events = 0;
  std::int64_t num_acknowledged = 0, num_failed = 0, num_sessions = 0, num_crashes = 0;
  std::map<std::string, std::int64_t> errors;  ///< that workers were told, by code
};

/// The history of one simulation, as seen from outside its processes, and the checks that it must pass.
class TrainingFacts {
 public:
  TrainingFacts(net::Simulation& simulation, bool is_verbose) : is_verbose_(is_verbose), simulation_(simulation) {}
  virtual ~TrainingFacts() = default;

  void fail(std::string what);
  void log(std::string_view line) const;
  virtual void note_crash(const std::string& task);

  std::vector<Clock::time_point> last_step;  ///< of each worker, the last acknowledged step
  TrainingOutcome outcome;

 private:
  const bool is_verbose_;
  net::Simulation& simulation_;
};

/// The state that all processes of one simulation share without knowing it.
struct SimulatedWorld {
  net::Simulation& simulation;
  net::SimulatedNetwork& network;
  TrainingFacts& facts;
  OpSet ops = standard_ops;
  int num_ps = 0;
  int num_workers = 0;
  Duration max_pause = {};        ///< of a worker between two steps
  Duration max_fault_pause = {};  ///< between two faults
  Duration silence_timeout = {};
  std::string secret = {};

  /// Draws how soon faults come, how soon silence counts, and whether tasks have a secret.
  void draw_faults();
};

/// The program of a worker, as with a Supervisor, but without a thread that it could block.
class SimulatedWorker : public std::enable_shared_from_this<SimulatedWorker> {
 public:
  SimulatedWorker(SimulatedWorld& world, int index, std::shared_ptr<net::SimulatedProcess> process,
                  std::shared_ptr<SessionTarget> target);
  virtual ~SimulatedWorker() = default;

  void begin() { later({}); }
  /// Its process has crashed.
  void end();
  /// True if a run should have ended long ago.
  bool hangs() const;
  const std::string& name() const { return process_->name(); }

 protected:
  using Results = std::vector<AnyTensor>;
  using Then = std::function<void(const Results&)>;

  virtual const Graph& graph() const = 0;
  /// Does the next work with a session; `is_fresh` means that the session was made a moment ago.
  virtual void go_on(Session& session, bool is_fresh) = 0;
  int index() const noexcept { return index_; }
  bool is_alive() const { return process_->is_alive(); }
  bool has_session() const { return session_ != nullptr; }
  /// Calls `work` after a pause, unless the process has crashed.
  void after(Duration pause, std::function<void()> work);
  /// Goes on after a pause.
  void later(Duration pause) {
    after(pause, [this] { go(); });
  }
  /// Goes on now.
  void go();
  /// Ends with `then` or with a loss. Without `deadline` the run has one by chance.
  void run(std::vector<Feed> feeds, std::span<const AnyOutput> fetched, std::vector<Operation> targets, Then then,
           std::optional<Duration> deadline = {});
  /// Notes that a step has been acknowledged, and goes on.
  void note_step();

 private:
  void make_session();
  void lose(const Status& status);

  SimulatedWorld& world_;
  const int index_;
  const std::shared_ptr<net::SimulatedProcess> process_;
  std::shared_ptr<SessionTarget> target_;
  std::unique_ptr<Session> session_;
  bool is_fresh_ = false;
  std::optional<Clock::time_point> run_ends_by_;
};

/// Tasks that start, crash and are cut off from each other. The workers run a program.
class SimulatedCluster {
 public:
  using MakeWorker = std::function<std::shared_ptr<SimulatedWorker>(
      int index, const std::shared_ptr<net::SimulatedProcess>& process, const std::shared_ptr<SessionTarget>& target)>;

  /// Starts the world's tasks, one after the other.
  SimulatedCluster(SimulatedWorld& world, MakeWorker make_worker);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// All workers must go on when the faults are over.
  TrainingOutcome run(const TrainingOptions& options);

 private:
  struct Task;

  void add_task(const std::string& job, int index);
  void start_after(Task& task, Duration pause);
  void start(Task& task);
  void crash(Task& task, bool with_power);
  void stop(Task& task);
  void plan_fault(Clock::time_point until);
  void cause_fault(Clock::time_point until);

  SimulatedWorld& world_;
  const MakeWorker make_worker_;
  net::ClusterSpec spec_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace dflow::testing
