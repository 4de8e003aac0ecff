// Trains on handwritten digits with parameter servers and replicas, each a process that goes at its own pace:
//   dflow-launch --ps 1 --workers 2 --chief -- ps_and_workers
// With --staleness N no replica gets further ahead of the slowest than N steps. The chief is a replica too. It also
// initialises, shows how far all have come, and tests.

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "digits.hpp"

namespace df = dflow;

namespace {

struct Flags {
  std::string data;
  std::string trace;
  std::string model = "conv";
  std::int64_t epochs = 0;
  std::int64_t batch = 64;
  std::int64_t staleness = -1;
  std::uint64_t seed = 1;
};

int train(const Flags& flags, const df::net::ClusterSpec& cluster) {
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();

  const auto sets = digits::read_sets(flags.data, flags.seed);
  df::Graph graph({.seed = flags.seed});
  auto on = graph.device(df::train::replica_device(cluster));
  const auto& shape = sets.train.images.shape();
  auto images = df::placeholder<float>(graph, {df::dynamic, shape[1], shape[2], shape[3]});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto training = df::placeholder<bool>(graph, df::Shape{});
  auto logits = digits::logits_of(flags.model, images, training);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto accuracy = df::accuracy(logits, labels);

  // Every replica goes through the images in an order of its own; all together do `steps`.
  const auto order_seed = flags.seed + 1000 * static_cast<std::uint64_t>(cluster.task_index() + !cluster.is_chief());
  df::train::Minibatches batches(sets.train.size(), flags.batch, order_seed);
  const std::int64_t epochs = flags.epochs != 0 ? flags.epochs : flags.data.empty() ? 40 : 8;
  const std::int64_t steps = epochs * batches.per_epoch();
  df::Variable<std::int64_t> global_step(graph, std::int64_t{0}, {.name = "global_step", .trainable = false});
  auto rate = df::train::cosine_decay(2e-3f, global_step, steps);
  const df::train::Adam optimizer(rate);
  df::train::SupervisorOptions options{.session = {.target = server.target({"/job:ps"})},
                                       .is_chief = cluster.is_chief()};
  df::train::StaleSyncReplicas stale(optimizer, {.staleness = std::max<std::int64_t>(flags.staleness, 0),
                                                 .replicas = cluster.num_replicas(),
                                                 .rank = cluster.replica_rank()});
  const bool is_bounded = flags.staleness >= 0;
  auto train = is_bounded ? stale.minimize(loss, {.global_step = global_step})
                          : optimizer.minimize(loss, {.global_step = global_step});
  df::train::Supervisor supervisor(graph, is_bounded ? stale.supervised(options) : options);
  std::unique_ptr<df::train::Progress> progress;
  if (cluster.is_chief()) progress = std::make_unique<df::train::Progress>(steps);
  for (std::int64_t done = 0, shown = 0; done < steps;) {
    const auto rows = batches.next();
    const auto x = df::train::rows_of(sets.train.images, rows);
    const auto y = df::train::rows_of(sets.train.labels, rows);
    const auto [value, step] = supervisor.run([&](df::Session& session) {
      return session.run({{images, x}, {labels, y}, {training, true}}, loss, global_step, train);
    });
    done = step.scalar() + 1;
    for (; progress != nullptr && shown < std::min(done, steps); ++shown) progress->step(value.scalar());
  }
  if (is_bounded) stale.finish(supervisor);
  if (!cluster.is_chief()) return 0;
  if (!flags.trace.empty()) {
    df::RunMetadata metadata;
    const auto part = df::slice(sets.train, 0, flags.batch);
    supervisor.run([&](df::Session& session) {
      session.run({.trace = true}, &metadata, {{images, part.images}, {labels, part.labels}, {training, true}}, loss,
                  train);
    });
    df::PosixFileSystem().write_file_atomically(flags.trace, df::chrome_trace(metadata.stats));
    std::printf("wrote %s\n", flags.trace.c_str());
  }
  const double score = digits::accuracy_on(sets.test, [&](const df::LabelledImages& part) {
    return supervisor.run([&](df::Session& session) {
      return session.run({{images, part.images}, {labels, part.labels}, {training, false}}, accuracy).scalar();
    });
  });
  std::printf("test accuracy %.4f\n", score);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains a model on handwritten digits in many processes; --dflow_cluster and others say which is which.");
  app.allow_extras();
  app.add_option("--data", flags.data, "directory of the MNIST IDX files, gzip-compressed or not");
  app.add_option("--trace", flags.trace, "file to write the Chrome trace of one step of all tasks to");
  app.add_option("--model", flags.model, "softmax, mlp or conv")->check(CLI::IsMember({"softmax", "mlp", "conv"}));
  app.add_option("--epochs", flags.epochs, "times to go through the training images, all replicas together");
  app.add_option("--batch", flags.batch, "images per step of a replica");
  app.add_option("--staleness", flags.staleness, "steps that a replica may be ahead of the slowest; -1: any number");
  app.add_option("--seed", flags.seed, "of variables, order and split")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return train(flags, df::net::ClusterSpec::from_flags(argc, argv));
  } catch (const df::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
