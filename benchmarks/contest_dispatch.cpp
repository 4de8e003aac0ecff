// What it costs to run a node, without what the node computes; a side of `benchmarks/contest.py dispatch`.
// usage: bench_contest_dispatch THREADS
#include <dflow/dflow.hpp>

#include "contestant.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

namespace df = dflow;

namespace {

struct Steps {
  df::Graph graph;
  std::unique_ptr<df::Session> session;
  std::function<void()> run;
};

df::Operation null_graph(df::Graph& graph, const std::string& kind, std::size_t size) {
  std::mt19937 random(1);
  std::vector<df::Operation> nodes;
  nodes.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<df::Operation> after;
    if (kind == "chain" && i > 0) after = {nodes.back()};
    if (kind == "fan-out" && i > 0) after = {nodes.front()};
    if (kind == "random") {
      // Up to two among the thousand before.
      const std::size_t low = i > 1000 ? i - 1000 : 0;
      for (std::size_t j = 0; j < std::min<std::size_t>(2, i); ++j) after.push_back(nodes[low + random() % (i - low)]);
    }
    const auto scope = graph.control_dependencies(after);
    nodes.push_back(df::no_op(graph));
  }
  if (kind == "chain") return nodes.back();
  const std::size_t first = kind == "fan-out" ? 1 : nodes.size() - std::min<std::size_t>(1000, nodes.size());
  return df::group(std::span(nodes).subspan(first));
}

df::SessionOptions options(int threads) { return {.num_threads = threads}; }

void add_null_graph(df::bench::Contestant& rows, const std::string& kind, std::size_t size, int threads) {
  const std::string name = kind + " " + std::to_string(size);
  rows.row(name, [=] {
    auto steps = std::make_shared<Steps>();
    const auto last = null_graph(steps->graph, kind, size);
    steps->session = std::make_unique<df::Session>(steps->graph, options(threads));
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(), df::fetches(last)))>(
        steps->session->prepare(df::feeds(), df::fetches(last)));
    return [steps, step] { (*step)(); };
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  df::bench::Contestant rows;
  for (const std::size_t size : {10'000, 100'000}) {
    add_null_graph(rows, "chain", size, threads);
    add_null_graph(rows, "fan-out", size, threads);
    add_null_graph(rows, "random", size, threads);
    rows.timed("first run " + std::to_string(size), [=] {
      df::Graph graph;
      const auto last = null_graph(graph, "random", size);
      const double start = df::bench::now_ns(df::bench::Clock::wall);
      df::Session session(graph, options(threads));
      session.run(last);
      return df::bench::now_ns(df::bench::Clock::wall) - start;
    });
  }
  rows.row("scalar additions 10000", [=] {
    auto steps = std::make_shared<Steps>();
    const auto x = df::placeholder<float>(steps->graph, df::Shape{});
    df::Output<float> sum = x;
    for (int i = 0; i < 10'000; ++i) sum = sum + x;
    steps->session = std::make_unique<df::Session>(steps->graph, options(threads));
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(x), df::fetches(sum)))>(
        steps->session->prepare(df::feeds(x), df::fetches(sum)));
    return [steps, step] { (*step)(1.0f); };
  });
  rows.row("step of one addition", [=] {
    auto steps = std::make_shared<Steps>();
    const auto x = df::placeholder<float>(steps->graph, df::Shape{});
    const auto sum = x + 1.0f;
    steps->session = std::make_unique<df::Session>(steps->graph, options(threads));
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(x), df::fetches(sum)))>(
        steps->session->prepare(df::feeds(x), df::fetches(sum)));
    return [steps, step] { (*step)(2.0f); };
  });
  return rows.serve();
}
