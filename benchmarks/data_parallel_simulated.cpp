// Measures how data parallelism scales when computing takes a constant time and all else is coordination. dflow's own
// sessions, servers and protocol run on a simulated network and clock; the processor's own work takes no time there.
//
// usage: bench_data_parallel_simulated [--step MS] [WORKERS...]      MS a worker computes, 3350; WORKERS 1 10 25 50 100
//
// The model has the tensors of Inception-v3, 27 million floats on 17 parameter servers (Abadi et al. 2016,
// arXiv:1605.08695, section 6.3). Each variable is on the server that has the fewest bytes so far. A worker's
// accelerator computes one layer after the other, forwards and backwards, for a time in proportion to its
// multiplications. MS is the time that TensorFlow's own trainer published for a batch of 32 on a Tesla K40c
// (tensorflow/models, inception/README.md of 2016). At that time the announcement of TensorFlow 0.8 said 56 times as
// fast by 100 GPUs. Each machine has one network interface of 10 Gbit/s each way, and a message takes 50 to 500 us
// besides.
//
// Tensors are a sixteenth of their size, and an interface carries a sixteenth in a second: the bytes take the time of
// the real ones. All times are simulated: the same on every machine.

#include "accelerated_model.hpp"
#include "simulated_cluster.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

namespace {

constexpr std::int64_t num_ps = 17, batch = 32, scale = 16;
constexpr double interface_bytes_per_second = 10e9 / 8;
constexpr int first_step = 2, last_step = 6;  ///< of those that are measured

struct Setting {
  bool is_synchronous = true;
  std::int64_t workers = 1;
  df::Duration compute{};  ///< of a step
};

class SimulatedTraining {
 public:
  explicit SimulatedTraining(const Setting& setting) : setting_(setting), cluster_(options()) {
    df::bench::accelerate = [this](df::Duration time, df::Task done) {
      cluster_.simulation.schedule_after(time, std::move(done));
    };
    cluster_.add_tasks("ps", num_ps);
    cluster_.add_tasks("chief", 1);
    cluster_.add_tasks("worker", setting.workers);
    for (int p = 0; p < num_ps; ++p) cluster_.start("ps", p);
    chief_ = replica("chief", 0);
    for (int w = 0; w < setting.workers; ++w) workers_.push_back(replica("worker", w));
  }

  /// Seconds per step of each worker, while all train.
  double seconds_per_step() {
    chief_->session->run(df::initialize_variables(chief_->graph));
    if (setting_.is_synchronous) {
      cluster_.simulation.schedule_after(0s, [&] {
        for (const auto& worker : workers_) {
          worker->sync->begin(*worker->session);
          train(*worker);
        }
      });
      chief_->sync->lead(*chief_->session, stop_.get_token());  // lends its stack to all others
    } else {
      for (const auto& worker : workers_) {
        const df::Duration pause = cluster_.simulation.random_between(0s, setting_.compute);
        worker->process->schedule_after(pause, [this, &worker] { train(*worker); });
      }
      cluster_.simulation.run_until([&] { return stop_.stop_requested(); }, df::Clock::never);
    }
    cluster_.simulation.run_for(setting_.compute + 10s);  // what is under way ends
    double steps_per_second = 0;
    for (const auto& worker : workers_) {
      const Seconds took = worker->ends.back() - worker->ends[first_step];
      steps_per_second += static_cast<double>(worker->ends.size() - 1 - first_step) / took.count();
    }
    return static_cast<double>(setting_.workers) / steps_per_second;
  }

 private:
  struct Replica {
    std::shared_ptr<df::net::SimulatedProcess> process;
    df::Graph graph;
    std::optional<df::train::SyncReplicas> sync;
    df::Operation train;
    std::unique_ptr<df::Session> session;
    std::vector<df::Clock::time_point> ends;  ///< of its steps
  };

  static df::bench::SimulatedClusterOptions options() {
    df::bench::SimulatedClusterOptions options;
    options.simulation.max_pool_delay = 20us;
    options.network.link.bytes_per_second = 1e18;
    options.network.interface_bytes_per_second = interface_bytes_per_second / scale;
    options.ops = df::bench::accelerated_ops;
    return options;
  }

  std::unique_ptr<Replica> replica(const std::string& job, int index) {
    auto made = std::make_unique<Replica>();
    const df::bench::SimulatedTask& task = cluster_.start(job, index);
    made->process = task.process;
    {
      const auto on = made->graph.device(df::train::replica_device(num_ps, task.server->task()));
      const df::Output<float> loss = df::bench::accelerated_model(made->graph, setting_.compute, scale);
      const df::train::GradientDescent optimizer(0.01f);
      if (setting_.is_synchronous) {
        made->sync.emplace(optimizer, df::train::SyncReplicasOptions{.replicas = setting_.workers, .rank = index});
        made->train = made->sync->minimize(loss);
      } else {
        made->train = optimizer.minimize(loss);
      }
    }
    made->session = cluster_.session(made->graph, task);
    return made;
  }

  void train(Replica& worker) {
    worker.session->run_async(worker.train, [this, &worker](const df::Status& status) {
      if (stop_.stop_requested()) return;
      if (!status.ok()) df::throw_error(status);
      worker.ends.push_back(cluster_.simulation.now());
      if (worker.ends.size() == last_step + 1 && ++num_done_ == setting_.workers) return void(stop_.request_stop());
      train(worker);
    });
  }

  const Setting setting_;
  std::stop_source stop_;  // looked at to the cluster's end
  std::int64_t num_done_ = 0;
  df::bench::SimulatedCluster cluster_;
  std::unique_ptr<Replica> chief_;
  std::vector<std::unique_ptr<Replica>> workers_;
};

void print_rows(bool is_synchronous, df::Duration compute, const std::vector<std::int64_t>& counts) {
  std::printf("%s, %.3f s of computing a step\n", is_synchronous ? "synchronous" : "asynchronous",
              Seconds(compute).count());
  const auto seconds = [&](std::int64_t workers, df::Duration time) {
    return SimulatedTraining({is_synchronous, workers, time}).seconds_per_step();
  };
  const double alone = seconds(1, compute);
  for (const std::int64_t workers : counts) {
    const double step = workers == 1 ? alone : seconds(workers, compute);
    const double exchange = seconds(workers, 0s);
    const auto images = static_cast<double>(workers * batch) / step;
    const double coordination = step - Seconds(compute).count();
    std::printf(
        "%4d workers: %7.1f images/s, speed-up %6.2f; %.3f s a step, %.3f s (%4.1f %%) of it coordination, which "
        "takes %.3f s alone\n",
        static_cast<int>(workers), images, static_cast<double>(workers) * alone / step, step, coordination,
        coordination / step * 100, exchange);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  df::Duration compute = 3350ms;
  std::vector<std::int64_t> counts;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--step" && i + 1 < argc) {
      compute = std::chrono::milliseconds(std::strtoll(argv[++i], nullptr, 10));
    } else {
      counts.push_back(std::strtoll(argv[i], nullptr, 10));
    }
  }
  if (counts.empty()) counts = {1, 10, 25, 50, 100};
  for (const bool is_synchronous : {true, false}) print_rows(is_synchronous, compute, counts);
}
