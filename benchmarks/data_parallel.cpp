// The cost of coordination to the processors when computing costs them nothing: data parallelism in processes of their
// own, over TCP on loopback. Each worker sleeps where an accelerator would compute.
//
// usage: bench_data_parallel [--step MS] [--ps N] [WORKERS...]      MS a worker sleeps, 2000; 4; WORKERS 1 4 8 16
//
// The model is the one of bench_data_parallel_simulated: the tensors of Inception-v3 at a sixteenth of their size, on
// N parameter servers. A step is compared with a step of one process that has the variables itself and sleeps the
// same. The processors must not be the limit: the last column says how many of them were busy.
#include "accelerated_model.hpp"
#include "cluster_tasks.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;
using Seconds = std::chrono::duration<double>;

namespace {

constexpr std::int64_t scale = 16;
constexpr int first_steps = 2, measured_steps = 5;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Seconds for a step.
double time_steps(df::Session& session, const df::Operation& train, int count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) session.run(train);
  return Seconds(std::chrono::steady_clock::now() - begin).count() / count;
}

struct Setting {
  bool is_synchronous = true;
  std::int64_t workers = 1;
  df::Duration compute{};
};

/// A process that trains, by commands.
class Worker {
 public:
  Worker(const df::net::ClusterSpec& spec, const Setting& setting)
      : server_(spec, {.ops = df::bench::accelerated_ops, .num_threads = 1}), is_chief_(spec.task_index() == 0) {
    const auto on = graph_.device(df::train::replica_device(spec));
    const df::Output<float> loss = df::bench::accelerated_model(graph_, setting.compute, scale);
    const df::train::GradientDescent optimizer(0.01f);
    if (setting.is_synchronous) {
      sync_.emplace(optimizer, df::train::SyncReplicasOptions{.replicas = setting.workers, .rank = spec.task_index()});
      train_ = sync_->minimize(loss);
    } else {
      train_ = optimizer.minimize(loss);
    }
  }

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    int count = 0;
    words >> command >> count;
    if (command == "cpu") return std::to_string(cpu_seconds());
    if (command == "train") return std::to_string(time_steps(*session_, train_, count));
    session_.emplace(graph_,
                     df::SessionOptions{.ops = df::bench::accelerated_ops, .target = server_.target({"/job:ps"})});
    if (is_chief_) session_->run(df::initialize_variables(graph_));
    if (sync_) {
      if (is_chief_) leader_ = std::jthread([this](const std::stop_token& stop) { sync_->lead(*session_, stop); });
      sync_->begin(*session_);
    }
    return "begun";
  }

 private:
  df::net::Server server_;
  const bool is_chief_;
  df::Graph graph_;
  std::optional<df::train::SyncReplicas> sync_;
  df::Operation train_;
  std::optional<df::Session> session_;
  std::jthread leader_;
};

int run_task(const std::vector<std::string>& arguments) {
  const df::net::ClusterSpec spec = df::bench::spec_of(arguments);
  if (spec.job() == "ps") {
    df::net::Server server(spec, {.ops = df::bench::accelerated_ops, .num_threads = 1});
    df::bench::serve_commands([](const std::string&) { return std::to_string(cpu_seconds()); });
    return 0;
  }
  Worker worker(spec, {arguments.at(4) == "synchronous", static_cast<std::int64_t>(spec.num_tasks("worker")),
                       std::chrono::milliseconds(std::stoll(arguments.at(5)))});
  df::bench::serve_commands([&](const std::string& line) { return worker.answer(line); });
  return 0;
}

/// The time of a step in one process without a cluster.
double seconds_alone(df::Duration compute) {
  df::Graph graph;
  const auto train = df::train::GradientDescent(0.01f).minimize(df::bench::accelerated_model(graph, compute, scale));
  df::Session session(graph, {.ops = df::bench::accelerated_ops, .num_threads = 1});
  session.run(df::initialize_variables(graph));
  time_steps(session, train, first_steps);
  return time_steps(session, train, measured_steps);
}

double cpu_of(df::bench::Tasks& tasks) {
  double seconds = 0;
  for (const std::string& answer : tasks.ask_workers("cpu")) seconds += std::stod(answer);
  for (df::bench::Child& server : tasks.servers) {
    server.tell("cpu");
    seconds += std::stod(server.hear());
  }
  return seconds;
}

void print_row(const std::string& kind, int ps, int workers, std::int64_t step_ms, double alone) {
  df::bench::Tasks tasks(ps, workers, {kind, std::to_string(step_ms)});
  tasks.workers.front().tell("begin");
  tasks.workers.front().hear();
  for (std::size_t w = 1; w < tasks.workers.size(); ++w) tasks.workers[w].tell("begin");
  for (std::size_t w = 1; w < tasks.workers.size(); ++w) tasks.workers[w].hear();
  tasks.ask_workers("train " + std::to_string(first_steps));
  const double cpu_before = cpu_of(tasks);
  double step = 0;
  for (const std::string& answer : tasks.ask_workers("train " + std::to_string(measured_steps))) {
    step += std::stod(answer) / workers;
  }
  const double cpu = (cpu_of(tasks) - cpu_before) / measured_steps;
  std::printf(
      "%-12s %3d workers: %7.1f ms a step, alone %7.1f, of %3d speed-up %6.2f; %5.1f ms of processor a worker's "
      "step, %.2f of %u busy\n",
      kind.c_str(), workers, step * 1e3, alone * 1e3, workers, alone / step * workers, cpu / workers * 1e3, cpu / step,
      std::thread::hardware_concurrency());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto clock = std::make_shared<df::RealClock>();
  df::bench::accelerate = [clock](df::Duration time, df::Task done) {
    clock->schedule_at(clock->now() + time, std::move(done));
  };
  if (argc > 1 && std::string(argv[1]) == "task") return run_task({argv + 1, argv + argc});
  std::int64_t step_ms = 2000;
  int ps = 4;
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--step" && i + 1 < argc) {
      step_ms = std::stoll(argv[++i]);
    } else if (word == "--ps" && i + 1 < argc) {
      ps = std::stoi(argv[++i]);
    } else {
      counts.push_back(std::stoi(word));
    }
  }
  if (counts.empty()) counts = {1, 4, 8, 16};
  const double alone = seconds_alone(std::chrono::milliseconds(step_ms));
  for (const char* kind : {"synchronous", "asynchronous"}) {
    for (const int workers : counts) print_row(kind, ps, workers, step_ms, alone);
  }
}
