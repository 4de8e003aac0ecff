// Chains of elementwise nodes wait for nothing that their members did not wait for apart.
#include "cuda/chains/chain_beside.hpp"

#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <chrono>
#include <cmath>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// A branch that is never taken.
struct UntakenBeforeChain : Op<"UntakenBeforeChain", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

RunOptions within_limits() {
  RunOptions options;
  options.deadline = std::chrono::seconds(20);
  return options;
}

}  // namespace

template <>
struct dflow::Kernel<UntakenBeforeChain, Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

TEST_CASE("a partial run gives what it has the feeds for, though a later feed goes into the same elements", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {4}), z = placeholder<float>(graph, {4});
    Output<float> y, w;
    {
      const auto on = graph.device("/gpu:0");
      y = tanh(x * 2.0f);
      w = y + z;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const Tensor<float> ones = Tensor<float>::full({4}, 1.0f);
    for (int again = 0; again < 3; ++again) {
      auto run = session.partial_run(within_limits(), nullptr, feeds(x, z), fetches(y, w));
      const Tensor<float> early = run.feed(x, ones).fetch(y);
      CHECK(run.feed(z, early).fetch(w)(3) == 2 * early(3));
    }
    CHECK(driver->launches()["chain"] > 0);
  }
  check_end(*driver);
}

TEST_CASE("what is put into a queue waits for no element of it", "[cuda]") {
  for (const bool waits_for_another : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
    {
      Graph graph;
      FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {{2, 2}}});
      const auto x = placeholder<float>(graph, {2, 2});
      Output<float> first, last;
      {
        const auto on = graph.device("/gpu:0");
        first = exp(matmul(x, x)) * 0.5f;
      }
      const Operation enqueue = queue.enqueue(first);
      const Output<float> element = queue.dequeue();
      {
        const auto on = graph.device("/gpu:0");
        last = first + element;
        if (waits_for_another) last = tanh(last) * 2.0f;
      }
      Session session(graph, {.devices = gpus_and_cpu(driver), .soft_placement = true});
      const Tensor<float> ones = Tensor<float>::full({2, 2}, 1.0f);
      for (int again = 0; again < 3; ++again) {
        std::vector<AnyTensor> results(1);
        session.run_erased(within_limits(), nullptr, std::vector<Feed>{{x, ones}}, std::vector<AnyOutput>{last},
                           std::vector<Operation>{enqueue}, results);
        const float half = std::exp(2.0f) * 0.5f, sum = half + half;
        CHECK(results[0].as<float>()(0, 0) == Approx(waits_for_another ? std::tanh(sum) * 2 : sum));
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("a result is alive beside one that is dead, whatever op made it so", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {2, 2});
    const auto untaken = apply<UntakenBeforeChain>(x);
    const Variable<float> v(graph, zeros<float>(graph, {2, 2}));
    Output<float> alive, dead;
    {
      const auto on = graph.device("/gpu:0");
      alive = exp(matmul(x, x));
      dead = alive + untaken;
    }
    const Operation update = v.assign_add(dead);
    Session session(
        graph,
        {.ops = standard_ops + ops<UntakenBeforeChain>, .devices = gpus_and_cpu(driver), .soft_placement = true});
    session.run(initialize_variables(graph));
    std::vector<AnyTensor> results(1);
    session.run_erased({}, nullptr, std::vector<Feed>{{x, Tensor<float>::full({2, 2}, 1.0f)}},
                       std::vector<AnyOutput>{alive}, std::vector<Operation>{update}, results);
    CHECK(results[0].as<float>()(1, 1) == std::exp(2.0f));
    CHECK(session.run(v)(0, 0) == 0);
  }
  check_end(*driver);
}
