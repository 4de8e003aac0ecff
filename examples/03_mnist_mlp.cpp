// Trains a perceptron with one hidden layer on MNIST. Usage: mnist_mlp DIRECTORY [EPOCHS]

#include <dflow/dflow.hpp>
#include <dflow/io/labelled_images.hpp>

#include <cstdio>
#include <cstdlib>

namespace df = dflow;

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: mnist_mlp DIRECTORY [EPOCHS]"), 0;
  df::PosixFileSystem files;
  const auto train_set = df::read_mnist(files, argv[1], "train"), test_set = df::read_mnist(files, argv[1], "t10k");

  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 28, 28, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(df::flatten(images), 512, {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(1e-3f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(images, labels), df::fetches(loss, train));
  df::train::Minibatches batches(train_set.size(), 128);
  const std::int64_t steps = batches.per_epoch() * (argc > 2 ? std::atoi(argv[2]) : 10);
  df::train::Progress progress(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto rows = batches.next();
    progress.step(
        step(df::train::rows_of(train_set.images, rows), df::train::rows_of(train_set.labels, rows)).scalar());
  }
  const auto score = session.run({{images, test_set.images}, {labels, test_set.labels}}, df::accuracy(logits, labels));
  std::printf("test accuracy %.4f\n", static_cast<double>(score.scalar()));
}
