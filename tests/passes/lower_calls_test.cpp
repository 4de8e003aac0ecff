#include <dflow/passes/lower_calls.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/functions.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

namespace df = dflow;

namespace {

df::StepGraph lowered_step(const df::AnyOutput& fetch, std::size_t max_nodes) {
  const df::GraphStore& graph = *fetch.graph();
  df::PruneScratch scratch;
  const auto place = [](df::NodeId, df::StepNode& node) { node.placed_on = 0; };
  const df::Endpoint fetched = fetch.endpoint();
  df::StepGraph step = df::prune(graph, {}, {&fetched, 1}, {}, scratch, place);
  df::attach_bodies(graph, step, scratch, place, {.lowers = true, .max_nodes = max_nodes});
  return step;
}

/// With all bodies, each once.
std::size_t num_nodes(const df::StepGraph& step, std::set<const df::StepGraph*>& seen) {
  std::size_t number = step.nodes.size();
  for (const auto& call : step.calls) {
    for (const auto& body : call->bodies) {
      if (body != nullptr && seen.insert(body.get()).second) number += num_nodes(*body, seen);
    }
  }
  return number;
}
std::size_t num_nodes(const df::StepGraph& step) {
  std::set<const df::StepGraph*> seen;
  return num_nodes(step, seen);
}

/// 60 functions that each inline the one before twice, called once.
df::Output<float> doubling_calls(df::Graph& graph) {
  auto last = df::function(graph, "f0", [](df::Output<float> v) { return v + 1.0f; }, {.is_inlined = true});
  for (int level = 1; level < 60; ++level) {
    last = df::function(graph, "f", [last](df::Output<float> v) { return last(last(v)); }, {.is_inlined = true});
  }
  return last(df::placeholder<float>(graph, {}));
}

df::StepGraph inlined_step(const df::AnyOutput& fetch, df::FunctionRef<void()>* check) {
  const df::GraphStore& graph = *fetch.graph();
  df::PruneScratch scratch;
  const auto place = [](df::NodeId, df::StepNode& node) { node.placed_on = 0; };
  const df::Endpoint fetched = fetch.endpoint();
  df::StepGraph step = df::prune(graph, {}, {&fetched, 1}, {}, scratch, place);
  df::attach_bodies(graph, step, scratch, place, {.check = check});
  return step;
}

}  // namespace

TEST_CASE("inlining makes a bounded number of nodes in all bodies together", "[passes]") {
  df::Graph graph;
  const std::size_t made = num_nodes(inlined_step(doubling_calls(graph), nullptr));
  CHECK(made > df::max_inlined_nodes / 2);
  CHECK(made < 2 * df::max_inlined_nodes);
}

TEST_CASE("inlining is given up in its middle when the check throws", "[passes]") {
  df::Graph graph;
  const auto y = doubling_calls(graph);
  int num_checks = 0, last = -1;
  const auto check = [&] {
    if (num_checks++ == last) throw df::Error(df::Status::deadline_exceeded("it is late"));
  };
  df::FunctionRef<void()> ref(check);
  inlined_step(y, &ref);
  const int all = num_checks;
  CHECK(all > 100);  // at each 1024 nodes, and at each body
  for (last = 0; last < all; last += 20) {
    num_checks = 0;
    CHECK_THROWS_AS(inlined_step(y, &ref), df::Error);
    CHECK(num_checks == last + 1);
  }
}

TEST_CASE("what is lowered has a bound over all bodies, not each", "[passes]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto twice = df::function(graph, "twice", [](df::Output<float> v) { return v + 1.0f; });
  for (int level = 0; level < 9; ++level) {
    twice = df::function(graph, "twice", [twice](df::Output<float> v) { return twice(twice(v)); });
  }
  auto many = df::function(graph, "many", [](df::Output<float> v) { return v; });
  for (int level = 0; level < 20; ++level) {
    many = df::function(graph, "many", [&](df::Output<float> v) {
      for (int call = 0; call < 20; ++call) v = twice(v);
      return many(v);
    });
  }
  // Each level is some 20 * 2^12 nodes alone, and stays a call.
  CHECK(num_nodes(lowered_step(many(x), 20'000)) < 50'000);
  CHECK(num_nodes(lowered_step(many(x), 500'000)) > 100'000);
}

TEST_CASE("whether a loop keeps state is asked once of each body in it", "[passes]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto f = df::function(graph, "f", [](df::Output<float> v) { return v + 1.0f; });
  for (int level = 0; level < 60; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) { return f(f(v)); });
  }
  auto y = df::while_loop([](auto v) { return v < 1.0f; }, [&](auto v) { return df::ensure_shape(f(v), {}); }, x);
  CHECK(num_nodes(lowered_step(y, df::max_body_nodes)) < 1'000'000);  // not 2^60 questions
}
