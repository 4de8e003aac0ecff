// Fits y = 3 x - 2 by gradient descent on the mean squared error.

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace df = dflow;

int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto y = df::placeholder<float>(graph, {df::dynamic});
  df::Variable<float> slope(graph, 0.0f, {.name = "slope"});
  df::Variable<float> offset(graph, 0.0f, {.name = "offset"});
  auto loss = df::reduce_mean(df::square(x * slope + offset - y));
  auto train = df::train::GradientDescent(0.2f).minimize(loss);

  std::vector<float> xs, ys;
  for (int i = 0; i < 100; ++i) {
    const float at = static_cast<float>(i) / 50.0f - 1.0f;
    xs.push_back(at);
    ys.push_back(3.0f * at - 2.0f + 0.1f * std::sin(37.0f * at));
  }
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(x, y), df::fetches(loss, train));
  for (int i = 0; i < 200; ++i) {
    const float value = step(df::borrow(xs, {100}), df::borrow(ys, {100})).scalar();
    if (i % 40 == 0) std::printf("step %3d  loss %.5f\n", i, static_cast<double>(value));
  }
  auto [a, b] = session.run(slope, offset);
  std::printf("y = %.3f x + %.3f\n", static_cast<double>(a.scalar()), static_cast<double>(b.scalar()));
  return std::abs(a.scalar() - 3.0f) < 0.1f && std::abs(b.scalar() + 2.0f) < 0.1f ? 0 : 1;
}
