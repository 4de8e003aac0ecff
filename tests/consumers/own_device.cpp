// A user's program with a device of its own, on public headers alone.
#include "support/proof_device.hpp"

#include <dflow/dflow.hpp>

#include <cstdio>
#include <memory>

namespace df = dflow;

int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto y = df::matmul(x, df::constant(graph, df::Tensor<float>({2, 1}, {1.0f, 2.0f})));

  df::Session session(graph, {.devices = {std::make_shared<df::testing::ProofDevice>(),
                                          std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{})}});
  auto value = session.run({{x, df::Tensor<float>({1, 2}, {3.0f, 4.0f})}}, y);
  std::printf("device of its own: %g\n", static_cast<double>(value(0, 0)));
  return value(0, 0) == 11.0f ? 0 : 1;
}
