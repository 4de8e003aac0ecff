// A user's program: feeds a matrix product and checks the answer.
#include <dflow/dflow.hpp>

#include <cstdio>

namespace df = dflow;

int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto w = df::constant(graph, df::Tensor<float>({2, 1}, {1.0f, 2.0f}));
  auto y = df::matmul(x, w);

  df::Session session(graph);
  auto value = session.run({{x, df::Tensor<float>({1, 2}, {3.0f, 4.0f})}}, y);
  std::printf("consumer: %g\n", static_cast<double>(value(0, 0)));
  return value(0, 0) == 11.0f ? 0 : 1;
}
