// Trains a model on handwritten digits: by default on the 1,797 small images that come along, with --data on MNIST.

#include <dflow/dflow.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "digits.hpp"

namespace df = dflow;

namespace {

struct Flags {
  std::string data;
  std::string trace;
  std::string model = "conv";
  std::int64_t epochs = 0;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  int threads = 0;
};

double train_and_test(const Flags& flags) {
  const auto sets = digits::read_sets(flags.data, flags.seed);
  df::Graph graph({.seed = flags.seed});
  const auto& shape = sets.train.images.shape();
  auto images = df::placeholder<float>(graph, {df::dynamic, shape[1], shape[2], shape[3]});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto training = df::placeholder<bool>(graph, df::Shape{});
  auto logits = digits::logits_of(flags.model, images, training);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto accuracy = df::accuracy(logits, labels);

  df::train::Minibatches batches(sets.train.size(), flags.batch, flags.seed);
  const std::int64_t epochs = flags.epochs != 0 ? flags.epochs : flags.data.empty() ? 40 : 8;
  const std::int64_t steps = epochs * batches.per_epoch();
  df::Variable<std::int64_t> global_step(graph, std::int64_t{0}, {.name = "global_step", .trainable = false});
  auto rate = df::train::cosine_decay(2e-3f, global_step, steps);
  auto train = df::train::Adam(rate).minimize(loss, {.global_step = global_step});

  df::Session session(graph, {.num_threads = flags.threads});
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(images, labels, training), df::fetches(loss, train));
  const auto next_batch = [&] {
    const auto rows = batches.next();
    return std::pair{df::train::rows_of(sets.train.images, rows), df::train::rows_of(sets.train.labels, rows)};
  };
  df::train::Progress progress(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    auto [x, y] = next_batch();
    progress.step(step(x, y, true).scalar());
  }

  if (!flags.trace.empty()) {
    auto [x, y] = next_batch();
    df::RunMetadata metadata;
    session.run({.trace = true}, &metadata, {{images, x}, {labels, y}, {training, true}}, loss, train);
    df::PosixFileSystem().write_file_atomically(flags.trace, df::chrome_trace(metadata.stats));
    std::printf("wrote %s\n", flags.trace.c_str());
  }
  return digits::accuracy_on(sets.test, [&](const df::LabelledImages& part) {
    return session.run({{images, part.images}, {labels, part.labels}, {training, false}}, accuracy).scalar();
  });
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains a model on handwritten digits and prints its accuracy on others.");
  app.add_option("--data", flags.data, "directory of the MNIST IDX files, gzip-compressed or not");
  app.add_option("--trace", flags.trace, "file to write the Chrome trace of one step to");
  app.add_option("--model", flags.model, "softmax, mlp or conv")->check(CLI::IsMember({"softmax", "mlp", "conv"}));
  app.add_option("--epochs", flags.epochs, "times to go through the training images");
  app.add_option("--batch", flags.batch, "images per step");
  app.add_option("--seed", flags.seed, "of variables, order and split")->check(CLI::PositiveNumber);
  app.add_option("--threads", flags.threads, "0 for all cores");
  CLI11_PARSE(app, argc, argv);
  try {
    std::printf("test accuracy %.4f\n", train_and_test(flags));
  } catch (const df::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
