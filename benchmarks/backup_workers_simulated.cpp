// The time of a step over the number of backup workers, with 50 workers and more whose computation is simulated (Abadi
// et al. 2016, arXiv:1605.08695, figure 8): dflow's own sessions, servers and protocol on a simulated network and
// clock.
//
// usage: bench_backup_workers_simulated [WORKERS [MOST_BACKUPS [SECONDS [SEED]]]]
//
// A gradient takes about a second, and in one case of fifty up to three more. A step takes the gradients of the 50 that
// come first; backups are workers besides. The gain is of steps in a time and per worker, over that without backups:
// t(0) / t(b) * 50 / (50 + b). All times are simulated: the same for the same seed on every machine.

#include "simulated_cluster.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;

namespace {

/// A parameter server, a chief, and workers; each task in a process of its own.
class SimulatedTraining {
 public:
  SimulatedTraining(std::int64_t aggregate, std::int64_t workers, std::uint64_t seed)
      : cluster_({.seed = seed}), options_{.aggregate = aggregate, .replicas = workers} {
    cluster_.add_tasks("ps", 1);
    cluster_.add_tasks("chief", 1);
    cluster_.add_tasks("worker", workers);
    cluster_.start("ps", 0);
    chief_ = replica("chief", 0, 0);
    for (int w = 0; w < workers; ++w) workers_.push_back(replica("worker", w, w));
  }

  /// Simulated seconds for a step.
  double seconds_per_step(df::Duration time) {
    chief_->session->run(df::initialize_variables(chief_->graph));
    std::stop_source stop;
    df::Clock::time_point began;
    std::int64_t first = 0;
    cluster_.simulation.schedule_after(0s, [&] {
      for (const auto& worker : workers_) {
        worker->sync.begin(*worker->session);
        compute(*worker);
      }
    });
    // The first steps are left out.
    cluster_.simulation.schedule_after(10s, [&] {
      chief_->session->run_async(chief_->sync.global_step(),
                                 [&](const df::Status&, const df::Tensor<std::int64_t>& step) {
                                   began = cluster_.simulation.now();
                                   first = step.scalar();
                                 });
    });
    cluster_.simulation.schedule_after(10s + time, [&] { stop.request_stop(); });
    chief_->sync.lead(*chief_->session, stop.get_token());  // lends its stack to all others
    const double took = std::chrono::duration<double>(cluster_.simulation.now() - began).count();
    is_over_ = true;
    return took / static_cast<double>(chief_->session->run(chief_->sync.global_step()).scalar() - first);
  }

 private:
  struct Replica {
    explicit Replica(const df::train::SyncReplicasOptions& options)
        : sync(df::train::GradientDescent(0.01f), options) {}

    std::shared_ptr<df::net::SimulatedProcess> process;
    df::Graph graph;
    df::train::SyncReplicas sync;
    df::Operation train;
    std::unique_ptr<df::Session> session;
  };

  std::unique_ptr<Replica> replica(const std::string& job, int index, std::int64_t rank) {
    df::train::SyncReplicasOptions options = options_;
    options.rank = rank;
    auto made = std::make_unique<Replica>(options);
    const df::bench::SimulatedTask& task = cluster_.start(job, index);
    {
      const auto on = made->graph.device("/job:ps");
      const df::Variable<float> w(made->graph, df::Tensor<float>::full({1000}, 1.0f), {.name = "w"});
      made->train = made->sync.minimize(df::reduce_sum(w * w));
    }
    made->process = task.process;
    made->session = cluster_.session(made->graph, task);
    return made;
  }

  /// The time of a gradient: about a second, in one case of fifty a straggler's.
  df::Duration computation() {
    const df::Duration usual = cluster_.simulation.random_between(950ms, 1100ms);
    return cluster_.simulation.chance(0.02) ? usual + cluster_.simulation.random_between(0s, 3s) : usual;
  }

  void compute(Replica& worker) {
    if (is_over_) return;
    worker.process->schedule_after(computation(), [this, &worker] {
      worker.session->run_async(worker.train, [this, &worker](const df::Status& status) {
        if (status.ok()) compute(worker);
      });
    });
  }

  df::bench::SimulatedCluster cluster_;
  const df::train::SyncReplicasOptions options_;
  std::unique_ptr<Replica> chief_;
  std::vector<std::unique_ptr<Replica>> workers_;
  bool is_over_ = false;
};

std::int64_t argument(int argc, char** argv, int i, std::int64_t otherwise) {
  return argc > i ? std::strtoll(argv[i], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t workers = argument(argc, argv, 1, 50), most = argument(argc, argv, 2, 10);
  const std::chrono::seconds time(argument(argc, argv, 3, 300));
  const auto seed = static_cast<std::uint64_t>(argument(argc, argv, 4, 1));
  double without = 0;
  for (std::int64_t backups = 0; backups <= most; ++backups) {
    const double took = SimulatedTraining(workers, workers + backups, seed).seconds_per_step(time);
    if (backups == 0) without = took;
    const double share = static_cast<double>(workers) / static_cast<double>(workers + backups);
    std::printf("%3d workers, %2d backups: %6.3f s a step, gain %.3f\n", static_cast<int>(workers),
                static_cast<int>(backups), took, without / took * share);
    std::fflush(stdout);
  }
}
