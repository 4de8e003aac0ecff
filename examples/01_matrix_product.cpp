// Builds a graph of one matrix product, runs it, and differentiates it.

#include <dflow/dflow.hpp>

#include <iostream>

namespace df = dflow;

int main() {
  df::Graph graph;
  auto a = df::placeholder<float>(graph, {df::dynamic, 3});
  auto b = df::constant(graph, df::Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto product = df::matmul(a, b);
  auto slope = df::gradients(df::reduce_sum(product), a);

  df::Session session(graph);
  df::Tensor<float> x({2, 3}, {1, 0, 0, 0, 1, 1});
  auto [y, dy] = session.run({{a, x}}, product, slope);
  std::cout << "a b       = " << y.to_string() << "\n"
            << "d sum/d a = " << dy.to_string() << "\n";
  return y(1, 1) == 10.0f ? 0 : 1;
}
