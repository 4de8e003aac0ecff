// A program of one file with an op table of its own: it compiles the core and the parts of the families that the table
// names.
#include <dflow/dflow.hpp>
#include <dflow/src/core.hpp>
#include <dflow/src/ops/array.hpp>
#include <dflow/src/ops/math.hpp>
#include <dflow/src/ops/nn.hpp>

#include <cstdio>

namespace df = dflow;

constexpr auto table = df::ops<df::Placeholder, df::Const, df::Identity, df::MatMul, df::BiasAdd, df::Add, df::Mul,
                               df::Relu, df::Reshape, df::Softmax>;

int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto y = df::relu(df::matmul(x, df::constant(graph, df::Tensor<float>({2, 1}, {1.0f, 2.0f}))));
  df::Session session(graph, {.ops = table});
  const float value = session.run({{x, df::Tensor<float>({1, 2}, {3.0f, 4.0f})}}, y)(0, 0);
  std::printf("consumer: %g\n", static_cast<double>(value));
  return value == 11.0f ? 0 : 1;
}
