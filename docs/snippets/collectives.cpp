// The snippets of docs/collectives.md.

#include <dflow/dflow.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

void ops() {
  // [ops]
  df::Graph graph;
  std::vector<df::Output<float>> values;
  for (int i = 0; i < 3; ++i) {
    auto on = graph.device("/cpu:" + std::to_string(i));
    values.push_back(df::random_normal<float>(graph, {4, 2}));
  }
  auto sums = df::all_reduce(values);                            // [4, 2] on each of the three devices
  auto largest = df::all_reduce(values, df::ReduceBy::maximum);  // or mean, product, minimum
  auto rows = df::all_gather(values);                            // [12, 2] on each
  auto copies = df::broadcast_to_devices(sums[0], {"/cpu:1", "/cpu:2"});

  df::Session session(graph, {.num_cpu_devices = 3});
  auto [sum, row, copy] = session.run(sums[2], rows[1], copies[0]);  // the other results are not computed
  // [ops]
  std::printf("%d rows, the first begins with %g and %g\n", static_cast<int>(row.shape()[0]), row(0, 0), copy(0, 0));
  std::printf("%g\n", session.run(largest[0])(0, 0) - sum(0, 0));
}

void mirrored() {
  // [mirrored]
  df::Graph graph({.seed = 1});
  std::vector<df::Output<float>> images;
  std::vector<df::Output<std::int32_t>> labels;
  df::train::MirroredReplicas mirrored(df::train::Adam(1e-3f), {"/cpu:0", "/cpu:1"});  // or GPUs, or tasks
  auto train = mirrored.minimize(graph, [&](std::size_t) {  // once for each replica, on its device
    images.push_back(df::placeholder<float>(graph, {df::dynamic, 784}));
    labels.push_back(df::placeholder<std::int32_t>(graph, {df::dynamic}));
    auto logits = df::dense(df::dense(images.back(), 100, {.activation = df::Activation::relu}), 10);
    return df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels.back()));
  });
  df::train::Saver saver(graph, mirrored.saved_variables());  // one copy

  df::Session session(graph, {.num_cpu_devices = 2});
  session.run(df::initialize_variables(graph));  // or saver.restore(...)
  session.run(mirrored.mirror());                // all replicas begin with the first one's values
  const df::Tensor<float> x = df::Tensor<float>::full({32, 784}, 0.5f);
  const df::Tensor<std::int32_t> y = df::Tensor<std::int32_t>::full({32}, 3);
  for (int step = 0; step < 10; ++step) {
    session.run({{images[0], x}, {labels[0], y}, {images[1], x}, {labels[1], y}}, train);
  }
  // [mirrored]
  std::printf("%zu replicas\n", mirrored.num_replicas());
}

}  // namespace

int main() {
  ops();
  mirrored();
  return 0;
}
