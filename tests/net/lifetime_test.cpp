// A task of a cluster and what runs on it are destroyed in every order.
#include <dflow/session/target.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "support/errors.hpp"
#include "support/orders.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace df = dflow;
using df::Code;

namespace {

/// A session of a worker that computes on the task "ps".
struct ClusterWorld {
  using Step = df::PreparedStep<df::FeedList<float>, df::FetchList<df::Output<float>>>;

  ClusterWorld() {
    graph.emplace();
    const auto on = graph->device("/job:ps/task:0");
    x = df::placeholder<float>(*graph, {});
    y = x * 3.0f;
    target = cluster.server("worker", 0).target();
    session.emplace(*graph, df::SessionOptions{.target = target});
    step = session->prepare(df::feeds(x), df::fetches(y));
  }

  std::vector<Mortal> mortals() {
    return {mortal("graph", graph, [this](df::Graph& of) { CHECK(y.is_of(of.store())); }),
            mortal("session", session, [this](df::Session& of) { ran([&] {
                                                                   return of.run({{x, 2.0f}}, y);
                                                                 }); }),
            mortal("step", step, [this](const Step& of) { ran([&] { return of(2.0f); }); }),
            mortal("target", target, [](const df::SessionTarget& of) { CHECK_FALSE(of.task().empty()); }),
            {"server",
             [this] {
               cluster.stop("worker", 0);
               has_server = false;
             },
             [] {}}};
  }
  /// Other tasks run nothing for a server that has stopped.
  void ran(const auto& one) const { CHECK(code_of(one) == (has_server ? Code::ok : Code::unavailable)); }

  df::testing::MemoryCluster cluster{{{"ps", 1}, {"worker", 1}}};
  bool has_server = true;
  std::optional<df::Graph> graph;
  df::Output<float> x, y;
  std::shared_ptr<df::SessionTarget> target;
  std::optional<df::Session> session;
  std::optional<Step> step;
};

}  // namespace

TEST_CASE("server, target, graph, session and prepared step end in every order", "[net][lifetime]") {
  destroy_in_every_order<ClusterWorld>([](const ClusterWorld& world) {
    CHECK(world.y.is_dangling() == (!world.graph && !world.session && !world.step));
  });
}
