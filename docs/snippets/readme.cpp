// The program on the first page: a small network learns the exclusive or.

// [readme]
#include <dflow/dflow.hpp>

#include <cstdio>

namespace df = dflow;

int main() {
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(x, 16, {.activation = df::Activation::tanh});
  auto logits = df::dense(hidden, 2);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(0.05f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(x, labels), df::fetches(loss, train));
  df::Tensor<float> points({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  df::Tensor<std::int32_t> exclusive_or({4}, {0, 1, 1, 0});
  for (int i = 0; i < 200; ++i) step(points, exclusive_or);
  std::puts(session.run({{x, points}}, df::argmax(logits, 1)).to_string().c_str());  // int64[4] [0, 1, 1, 0]
}
// [readme]
