#include <dflow/passes/prune.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

std::vector<StepEndpoint> inputs(const StepGraph& graph, StepNodeId id) {
  const std::span<const StepEndpoint> all = graph.inputs_of(graph.node(id));
  return {all.begin(), all.end()};
}

std::vector<std::string> names(const StepGraph& graph) {
  std::vector<std::string> all;
  for (const StepNode& node : graph.nodes) all.push_back(node->name + (node.is_fed_only ? " fed" : ""));
  return all;
}

using Names = std::vector<std::string>;

struct Diamond {
  Graph graph;
  Output<float> x = placeholder<float>(graph, {}, {.name = "x"});
  Output<float> a = identity(x, {.name = "a"});
  Output<float> b = identity(x, {.name = "b"});
  Output<float> c = add_n({a, b}, {.name = "c"});
  Output<float> d = identity(c, {.name = "d"});

  StepGraph pruned(std::vector<AnyOutput> feeds, std::vector<AnyOutput> fetches,
                   std::vector<Operation> targets = {}) const {
    std::vector<Endpoint> in, out;
    std::vector<NodeId> nodes;
    for (const AnyOutput& feed : feeds) in.push_back(feed.endpoint());
    for (const AnyOutput& fetch : fetches) out.push_back(fetch.endpoint());
    for (const Operation& target : targets) nodes.push_back(target.node_id());
    return prune(*graph.store(), in, out, nodes);
  }
};

}  // namespace

TEST_CASE("a step needs what its fetches and targets depend on, up to its feeds", "[passes][prune]") {
  const Diamond g;
  CHECK(names(g.pruned({}, {g.c})) == Names{"x", "a", "b", "c"});
  CHECK(names(g.pruned({g.x}, {g.a})) == Names{"x fed", "a"});
  CHECK(names(g.pruned({g.a}, {g.c})) == Names{"x", "a fed", "b", "c"});
  CHECK(names(g.pruned({g.a, g.b}, {g.d})) == Names{"a fed", "b fed", "c", "d"});
  CHECK(names(g.pruned({g.c}, {g.c})) == Names{"c fed"});
  CHECK(names(g.pruned({g.x}, {})) == Names{"x fed"});
  CHECK(names(g.pruned({}, {}, {g.b.operation()})) == Names{"x", "b"});
  CHECK(g.pruned({}, {}).nodes.empty());
}

TEST_CASE("edges, fetches, feeds and targets are renumbered", "[passes][prune]") {
  const Diamond g;
  const StepGraph pruned = g.pruned({g.b}, {g.d, g.b, g.d}, {g.a.operation()});
  REQUIRE(names(pruned) == Names{"x", "a", "b fed", "c", "d"});
  constexpr StepNodeId a(1), b(2), c(3), d(4);
  CHECK(inputs(pruned, c) == std::vector<StepEndpoint>{{a, 0}, {b, 0}});
  CHECK(inputs(pruned, b).empty());
  CHECK(pruned.feeds == std::vector<StepEndpoint>{{b, 0}});
  CHECK(pruned.fetches == std::vector<StepEndpoint>{{d, 0}, {b, 0}, {d, 0}});
  CHECK(pruned.targets == std::vector<StepNodeId>{a});
}

TEST_CASE("a placeholder that is fed and a target needs nothing; another fed node runs for those that wait for it",
          "[passes][prune]") {
  Diamond g;
  Output<float> after_x, after_a;
  {
    const auto scope = g.graph.control_dependencies({g.x.operation()});
    after_x = random_uniform<float>(g.graph, {}, {}, {.name = "after_x"});
  }
  {
    const auto scope = g.graph.control_dependencies({g.a.operation()});
    after_a = random_uniform<float>(g.graph, {}, {}, {.name = "after_a"});
  }
  const auto has = [](const StepGraph& graph, const std::string& name) {
    const Names all = names(graph);
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  CHECK(names(g.pruned({g.x}, {}, {g.x.operation()})) == Names{"x fed"});
  CHECK(has(g.pruned({g.x}, {after_x}), "x fed"));
  const StepGraph waits = g.pruned({g.a, g.x}, {after_a});
  CHECK(has(waits, "a"));
  CHECK(has(waits, "x fed"));
  const StepGraph target = g.pruned({g.a}, {}, {g.a.operation()});
  CHECK(has(target, "a"));
  CHECK(has(target, "x"));  // which must be fed, then
}

TEST_CASE("a node of two outputs of which one is fed runs for the other", "[passes][prune]") {
  Graph graph;
  const auto labels = placeholder<float>(graph, {2, 3}), logits = placeholder<float>(graph, {2, 3});
  const AnyOutput loss = std::get<0>(apply<SoftmaxCrossEntropyWithLogits>(logits, labels));
  const AnyOutput backprop(loss.graph(), {loss.node_id(), 1});
  const Endpoint fed[] = {loss.endpoint()}, both[] = {loss.endpoint(), backprop.endpoint()},
                 first[] = {loss.endpoint()};
  CHECK(prune(*graph.store(), fed, first, {}).nodes.size() == 1);
  const StepGraph pruned = prune(*graph.store(), fed, both, {});
  CHECK(pruned.nodes.size() == 3);
  for (const StepNode& node : pruned.nodes) CHECK(!node.is_fed_only);
}

TEST_CASE("visit is told the old id of each node that is kept, and what the step has of it may be changed",
          "[passes][prune]") {
  const Diamond g;
  PruneScratch scratch;
  const Endpoint fetch[] = {g.b.endpoint()};
  for (int round = 0; round < 3; ++round) {
    std::vector<NodeId> ids;
    const StepGraph pruned = prune(*g.graph.store(), {}, fetch, {}, scratch, [&](NodeId id, StepNode& node) {
      ids.push_back(id);
      node.placed_on = 5;
    });
    CHECK(ids == std::vector<NodeId>{g.x.node_id(), g.b.node_id()});
    CHECK(pruned.node(StepNodeId(1)).placed_on == 5);
  }
}

TEST_CASE("working memory may be used again, also by a graph that has grown or is another", "[passes][prune]") {
  Diamond g;
  PruneScratch scratch;
  Output<float> y = g.d;
  for (int i = 0; i < 200; ++i) {
    y = identity(y);
    const Endpoint fetch[] = {y.endpoint()}, feed[] = {g.c.endpoint()};
    CHECK(prune(*g.graph.store(), {}, fetch, {}, scratch).nodes.size() == static_cast<std::size_t>(i) + 6);
    CHECK(prune(*g.graph.store(), feed, fetch, {}, scratch).nodes.size() == static_cast<std::size_t>(i) + 3);
  }
  const Diamond other;
  const Endpoint fetch[] = {other.a.endpoint()};
  CHECK(names(prune(*other.graph.store(), {}, fetch, {}, scratch)) == Names{"x", "a"});
}

TEST_CASE("an endpoint outside the graph is refused", "[passes][prune]") {
  const Diamond g;
  const auto is_refused = [&](std::vector<Endpoint> feeds, std::vector<Endpoint> fetches, std::vector<NodeId> targets) {
    try {
      static_cast<void>(prune(*g.graph.store(), feeds, fetches, targets));
    } catch (const Error& error) {
      return error.code() == Code::invalid_argument;
    }
    return false;
  };
  const NodeId outside(99);
  CHECK(is_refused({}, {{outside, 0}}, {}));
  CHECK(is_refused({}, {{NodeId(), 0}}, {}));
  CHECK(is_refused({{outside, 0}}, {}, {}));
  CHECK(is_refused({}, {}, {outside}));
  CHECK(!is_refused({}, {g.d.endpoint()}, {}));
  const auto error_of_target = [&](NodeId target) {
    const NodeId targets[] = {target};
    return status_of([&] { return prune(*g.graph.store(), {}, {}, targets); });
  };
  CHECK(mentions(error_of_target(outside), "a target is of node number 99; the graph has 5 nodes"));
  CHECK(mentions(error_of_target(NodeId()), "a target is of no node"));
}

TEST_CASE("an endpoint that is fed twice, or an output that a node does not have, is refused", "[passes][prune]") {
  const Diamond g;
  const auto is_refused = [&](std::vector<Endpoint> feeds, std::vector<Endpoint> fetches) {
    try {
      static_cast<void>(prune(*g.graph.store(), feeds, fetches, {}));
    } catch (const Error& error) {
      return error.code() == Code::invalid_argument;
    }
    return false;
  };
  CHECK(is_refused({g.x.endpoint(), g.x.endpoint()}, {g.d.endpoint()}));
  CHECK(is_refused({}, {{g.d.node_id(), 1}}));
}

TEST_CASE("a step graph drops what nothing needs any more", "[passes][prune]") {
  const Diamond g;
  StepGraph graph = g.pruned({g.x}, {g.d});
  graph.fetches = {{StepNodeId(1), 0}};
  graph.targets = {};
  const StepGraph less = prune(std::move(graph));
  CHECK(names(less) == Names{"x fed", "a"});
  CHECK(inputs(less, StepNodeId(1)) == std::vector<StepEndpoint>{{StepNodeId(0), 0}});
}

TEST_CASE("a fetch needs the feeds that its inputs and control edges lead to", "[passes][prune]") {
  Graph graph;
  std::vector<Output<float>> fed;
  for (int i = 0; i < 70; ++i) fed.push_back(placeholder<float>(graph, {}));
  const auto doubled = fed[0] * 2.0f;
  Output<float> after_doubled, after_fed, after_both;
  {
    const auto after = graph.control_dependencies({doubled.operation()});
    after_doubled = fed[1] + 1.0f;
  }
  {
    const auto after = graph.control_dependencies({fed[2].operation()});  // it runs no kernel to wait for
    after_fed = fed[3] + 1.0f;
  }
  {
    const auto after = graph.control_dependencies({after_doubled.operation()});
    after_both = fed[69] * fed[64];
  }
  const auto cut = fed[4] * 2.0f, behind = cut + 1.0f;
  std::vector<Endpoint> in, out;
  for (const Output<float>& feed : fed) in.push_back(feed.endpoint());
  in.push_back(cut.endpoint());
  const std::vector<std::pair<Output<float>, std::vector<std::size_t>>> expected{
      {doubled, {0}}, {after_doubled, {0, 1}}, {after_fed, {3}}, {after_both, {0, 1, 64, 69}}, {behind, {70}},
      {fed[5], {5}}};
  for (const auto& [fetch, feeds] : expected) out.push_back(fetch.endpoint());
  const std::vector<std::vector<bool>> needed = needed_feeds(prune(*graph.store(), in, out, {}));
  REQUIRE(needed.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("fetch " << i);
    std::vector<std::size_t> feeds;
    for (std::size_t f = 0; f < needed[i].size(); ++f) {
      if (needed[i][f]) feeds.push_back(f);
    }
    CHECK(needed[i].size() == 71);
    CHECK(feeds == expected[i].second);
  }
}
