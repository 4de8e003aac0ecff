// Reads handwritten digits in one process. 10_digits_cluster.cpp is the same program in any number of processes.

#include <dflow/dflow.hpp>

#include <cstdio>

namespace df = dflow;

int main() {
  df::PosixFileSystem files;
  const auto all = df::read_digits(files, DFLOW_EXAMPLES_DATA_DIR "/optdigits.csv.gz");
  const auto data = df::slice(all, 0, all.size() * 4 / 5), test = df::slice(all, data.size(), all.size());

  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(df::flatten(images), 128, {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(2e-3f).minimize(loss);
  auto accuracy = df::accuracy(logits, labels);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::Minibatches batches(data.size(), 64);
  for (std::int64_t i = 0; i < 20 * batches.per_epoch(); ++i) {
    const auto rows = batches.next();
    const auto x = df::train::rows_of(data.images, rows);
    const auto y = df::train::rows_of(data.labels, rows);
    session.run({{images, x}, {labels, y}}, train);
  }
  const auto score = session.run({{images, test.images}, {labels, test.labels}}, accuracy);
  std::printf("test accuracy %.4f\n", static_cast<double>(score.scalar()));
}
