// Trains on handwritten digits in step over many processes; some of them may be backups:
//   dflow-launch --ps 1 --workers 4 -- backup_workers --backups 1
// Each step takes the gradients that come first. The chief, or worker 0 if there is no chief, has them applied. The
// examples of a step depend on its number alone. With checkpoints an interrupted run ends as an uninterrupted one.

#include <dflow/dflow.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "digits.hpp"

namespace df = dflow;

namespace {

struct Flags {
  std::string data;
  std::string model = "mlp";
  std::int64_t steps = 300;
  std::int64_t batch = 32;
  std::int64_t backups = 0;
  std::uint64_t seed = 1;
  std::string checkpoints;
  std::int64_t save_every = 20;
  double straggling = 0;
  int straggle_ms = 50;
  int ready_seconds = 300;
};

int train(const Flags& flags, const df::net::ClusterSpec& cluster) {
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();

  const std::int64_t replicas = cluster.num_replicas();
  const std::int64_t rank = cluster.replica_rank();

  const auto sets = digits::read_sets(flags.data, flags.seed);
  df::Graph graph({.seed = flags.seed});
  auto on = graph.device(df::train::replica_device(cluster));
  const auto& shape = sets.train.images.shape();
  auto images = df::placeholder<float>(graph, {df::dynamic, shape[1], shape[2], shape[3]});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto logits = digits::logits_of(flags.model, images, df::constant(graph, false));
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto accuracy = df::accuracy(logits, labels);
  df::train::SyncReplicas sync(df::train::Adam(1e-3f),
                               {.aggregate = replicas - flags.backups, .replicas = replicas, .rank = rank});
  auto train = sync.minimize(loss);

  df::train::Supervisor supervisor(
      graph, sync.supervised({.session = {.target = server.target({"/job:ps"})},
                              .is_chief = cluster.is_chief(),
                              .checkpoint_dir = flags.checkpoints,
                              .save_every_steps = flags.checkpoints.empty() ? 0 : flags.save_every,
                              .save_on_sigterm = !flags.checkpoints.empty(),
                              .ready_timeout = std::chrono::seconds(flags.ready_seconds)}));
  digits::Batches batches(sets.train.size(), flags.batch * replicas, flags.seed);
  std::mt19937_64 chance(flags.seed + 77 * static_cast<std::uint64_t>(rank));
  std::unique_ptr<df::train::Progress> progress;
  if (cluster.is_chief()) progress = std::make_unique<df::train::Progress>(flags.steps);
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t shown = 0, last = 0;
  sync.train(supervisor, flags.steps, [&](df::Session& session, std::int64_t step) {
    last = step;
    if (std::generate_canonical<double, 53>(chance) < flags.straggling) {
      std::this_thread::sleep_for(std::chrono::milliseconds(flags.straggle_ms));
    }
    const auto rows = batches.rows(step, rank * flags.batch, (rank + 1) * flags.batch);
    const auto x = df::train::rows_of(sets.train.images, rows);
    const auto y = df::train::rows_of(sets.train.labels, rows);
    const float value = session.run({{images, x}, {labels, y}}, loss, train).scalar();
    for (; progress != nullptr && shown <= step; ++shown) progress->step(value);
  });
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::cout << "ends in step " << last << std::endl;
  if (supervisor.should_stop()) return 0;
  if (cluster.is_chief()) {
    double score = 0, test_loss = 0;
    supervisor.run([&](df::Session& session) {
      test_loss = 0;
      score = digits::accuracy_on(sets.test, [&](const df::LabelledImages& part) {
        const auto [value, share] = session.run({{images, part.images}, {labels, part.labels}}, loss, accuracy);
        test_loss += static_cast<double>(value.scalar()) * static_cast<double>(part.size());
        return share.scalar();
      });
    });
    std::printf("%.2f ms per step, recovered %d times\n", took.count() / static_cast<double>(flags.steps),
                supervisor.num_recoveries());
    std::printf("test loss %.17g\ntest accuracy %.4f\n", test_loss / static_cast<double>(sets.test.size()), score);
    std::fflush(stdout);
  }
  sync.finish(supervisor);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains a model on handwritten digits in step; --dflow_cluster and others say which process is which.");
  app.allow_extras();
  app.add_option("--data", flags.data, "directory of the MNIST IDX files, gzip-compressed or not");
  app.add_option("--model", flags.model, "softmax, mlp or conv")->check(CLI::IsMember({"softmax", "mlp", "conv"}));
  app.add_option("--steps", flags.steps, "steps, of all replicas together");
  app.add_option("--batch", flags.batch, "images per step and replica");
  app.add_option("--backups", flags.backups, "so many of the replicas a step does not wait for");
  app.add_option("--seed", flags.seed, "of variables, order and split")->check(CLI::PositiveNumber);
  app.add_option("--checkpoints", flags.checkpoints, "directory that all processes see, to save to and go on from");
  app.add_option("--save_every", flags.save_every, "steps between two checkpoints");
  app.add_option("--ready_seconds", flags.ready_seconds, "how long to wait for other tasks");
  app.add_option("--straggling", flags.straggling, "share of steps before which a replica sleeps");
  app.add_option("--straggle_ms", flags.straggle_ms, "how long it sleeps then");
  CLI11_PARSE(app, argc, argv);
  try {
    return train(flags, df::net::ClusterSpec::from_flags(argc, argv));
  } catch (const df::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
