#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("sessions compile new signatures and run while another thread builds", "[session]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  std::vector<Output<float>> ys;
  for (int i = 0; i < 60; ++i) ys.push_back(x * static_cast<float>(i));
  std::atomic<int> num_running{0}, num_wrong{0};
  std::atomic<bool> is_built{false};
  const auto run = [&](int devices) {
    Session session(graph, {.num_threads = 1, .num_cpu_devices = devices});
    int i = 0;
    do {
      const Output<float>& y = ys[static_cast<std::size_t>(i % 60)];
      const Tensor<float> value = session.run({{x, Tensor<float>({2}, {1, 2})}}, y);
      if (value(1) != 2.0f * static_cast<float>(i % 60)) ++num_wrong;
      if (i == 0) ++num_running;
      ++i;
    } while (i < 60 || !is_built);
  };
  std::thread on_one(run, 1), on_two(run, 2);
  while (num_running < 2) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) {
    const ScopeGuard scope = graph.name_scope("layer");
    const ScopeGuard beside = graph.colocate_with(x);
    graph.add_to_collection("built", relu(x).operation());
  }
  is_built = true;
  on_one.join();
  on_two.join();
  CHECK(num_wrong == 0);
  Session session(graph);
  const Output<float> last(AnyOutput(graph.store(), Endpoint{graph.collection("built").back().node_id(), 0}));
  CHECK(session.run({{x, Tensor<float>({2}, {-1, 2})}}, last)(1) == 2);
}

TEST_CASE("an update is placed with its variable, whatever device scope is around", "[session]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Variable<float> w;
  {
    const ScopeGuard on = graph.device("/cpu:0");
    w = Variable<float>(graph, 1.0f, {.name = "w"});
  }
  Operation bump, train;
  {
    const ScopeGuard on = graph.device("/cpu:1");
    bump = w.assign_add(x);
    const Output<float>& value = w;
    train = train::Adam(0.1f).minimize(square(x * value));
  }
  CHECK(bump.node().device.empty());
  CHECK(bump.node().colocated_with == w.handle().node_id());
  Session session(graph, {.num_threads = 1, .num_cpu_devices = 2});
  session.run(initialize_variables(graph));
  session.run({{x, 1.0f}}, bump);
  CHECK(session.run(w).scalar() == 2);
  session.run({{x, 1.0f}}, train);
  CHECK(session.run(w).scalar() < 2);
}
