// The values that the gradient of a loop keeps are limited on each device that runs a part of the loop.
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// The gradients of a loop with a body that multiplies on one device and bends on another.
std::vector<df::AnyTensor> run_kept_loop(const std::string& first, const std::string& second,
                                         std::int64_t max_kept_bytes, const df::SessionOptions& options) {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {24, 24});
  const auto w = df::placeholder<float>(graph, {24, 24});
  df::Output<float> dw, ddx;
  {
    const auto on = graph.device(first);
    const auto [i, last] = df::while_loop([](auto i, auto) { return i < 11; },
                                          [&](auto i, auto h) {
                                            const auto product = df::matmul(h, w);
                                            const auto there = graph.device(second);
                                            return std::tuple{i + 1, df::tanh(product)};
                                          },
                                          std::tuple{df::constant(graph, 0), x}, {.max_kept_bytes = max_kept_bytes});
    dw = df::gradients(df::reduce_sum(last), w);
    ddx = df::gradients(df::reduce_sum(dw * dw), x);
  }
  df::Tensor<float> at({24, 24});
  for (std::int64_t i = 0; i < at.num_elements(); ++i) at.data()[i] = static_cast<float>(i % 13 - 6) / 20.0f;
  df::Session session(graph, options);
  std::vector<df::AnyTensor> all;
  for (int run = 0; run < 2; ++run) {
    const auto [of_dw, of_ddx] = session.run({{x, at}, {w, at}}, dw, ddx);
    all.insert(all.end(), {of_dw, of_ddx});
  }
  return all;
}

}  // namespace

TEST_CASE("loops with a bound give the same on one device, over two, and over two tasks", "[split]") {
  const auto wanted = run_kept_loop("", "", -1, {});
  const auto check = [&](const std::vector<df::AnyTensor>& got) {
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(df::bitwise_equal(got[i], wanted[i]));
  };
  MemoryCluster cluster({{"worker", 2}});
  const std::string a = "/job:worker/task:0", b = "/job:worker/task:1";
  for (const std::int64_t bound : {0, 5'000}) {
    check(run_kept_loop("", "", bound, {}));
    check(run_kept_loop("/cpu:0", "/cpu:1", bound, {.num_cpu_devices = 2}));
    const df::SessionOptions options{.target = cluster.server("worker", 0).target()};
    check(run_kept_loop(b, b, bound, options));
    check(run_kept_loop(a, b, bound, options));
    check(run_kept_loop(b, a, bound, options));
  }
}
