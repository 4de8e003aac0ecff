#pragma once

#include <dflow/dflow.hpp>

#include <cstdio>

/// Runs one dense layer in a session with the given options; 0 if the answer is right.
inline int run_dense_layer(const dflow::SessionOptions& options) {
  namespace df = dflow;
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto w = df::constant(graph, df::Tensor<float>({2, 1}, {1.0f, 2.0f}));
  auto y = df::relu(df::matmul(x, w));

  df::Session session(graph, options);
  auto value = session.run({{x, df::Tensor<float>({1, 2}, {3.0f, 4.0f})}}, y);
  std::printf("dense layer: %g\n", static_cast<double>(value(0, 0)));
  return value(0, 0) == 11.0f ? 0 : 1;
}
