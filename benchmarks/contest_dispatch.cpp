// The cost of running a node, without the cost of its computation; a side of `benchmarks/contest.py dispatch`.
// usage: bench_contest_dispatch THREADS
#include <dflow/dflow.hpp>

#include "contestant.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

namespace df = dflow;

namespace {

/// Asynchronous by its interface, and done at once.
struct DoneAtOnce : df::Op<"DoneAtOnce", df::TypeList<float>> {
  using Outputs = df::Out<>;
  static constexpr bool is_stateful = true;
  static void infer(df::InferContext&) {}
};

}  // namespace

template <>
struct dflow::Kernel<DoneAtOnce, dflow::Cpu, float> {
  void run_async(KernelContext&, AsyncKernel::Done done) const { done(Status()); }
};

namespace {

/// The extra node in the middle of a graph of nodes that do nothing.
enum class Beside { nothing, asynchronous, receive };

struct Steps {
  df::Graph graph;
  std::unique_ptr<df::Session> session;
  std::function<void()> run;
};

/// A tensor that another device sends to this one.
df::Operation received(df::Graph& graph) {
  df::Output<float> sent;
  {
    const auto device = graph.device("/cpu:1");
    sent = df::random_uniform<float>(graph, df::Shape{});
  }
  return df::identity(sent).operation();
}

df::Operation null_graph(df::Graph& graph, const std::string& kind, std::size_t size, Beside beside = Beside::nothing) {
  std::mt19937 random(1);
  std::optional<df::ScopeGuard> device;
  if (beside == Beside::receive) device.emplace(graph.device("/cpu:0"));
  std::vector<df::Operation> nodes;
  nodes.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<df::Operation> after;
    if (kind == "chain" && i > 0) after = {nodes.back()};
    if (kind == "fan-out" && i > 0) after = {nodes.front()};
    if (kind == "random") {
      // Up to two of the thousand nodes before.
      const std::size_t low = i > 1000 ? i - 1000 : 0;
      for (std::size_t j = 0; j < std::min<std::size_t>(2, i); ++j) after.push_back(nodes[low + random() % (i - low)]);
    }
    if (i == size / 2 && beside == Beside::asynchronous) {
      const auto tensor = df::constant(graph, 1.0f);
      const auto scope = graph.control_dependencies({nodes.back()});
      after.push_back(df::apply<DoneAtOnce>(tensor));
    }
    if (i == size / 2 && beside == Beside::receive) after.push_back(received(graph));
    const auto scope = graph.control_dependencies(after);
    nodes.push_back(df::no_op(graph));
  }
  if (kind == "chain") return nodes.back();
  const std::size_t first = kind == "fan-out" ? 1 : nodes.size() - std::min<std::size_t>(1000, nodes.size());
  return df::group(std::span(nodes).subspan(first));
}

df::SessionOptions options(int threads) {
  return {.ops = df::standard_ops + df::ops<DoneAtOnce>, .num_threads = threads, .num_cpu_devices = 1};
}

void add_null_graph(df::bench::Contestant& rows, const std::string& kind, std::size_t size, int threads,
                    Beside beside = Beside::nothing) {
  std::string name = kind + " " + std::to_string(size);
  if (beside == Beside::asynchronous) name += ", one asynchronous";
  if (beside == Beside::receive) name += ", one received";
  rows.row(name, [=] {
    auto steps = std::make_shared<Steps>();
    const auto last = null_graph(steps->graph, kind, size, beside);
    df::SessionOptions session_options = options(threads);
    if (beside == Beside::receive) session_options.num_cpu_devices = 2;
    steps->session = std::make_unique<df::Session>(steps->graph, session_options);
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
    for (const char* kind : {"chain", "fan-out", "random"}) {
      for (const Beside beside : {Beside::nothing, Beside::asynchronous, Beside::receive}) {
        add_null_graph(rows, kind, size, threads, beside);
      }
    }
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
  rows.row("loop of 10000 iterations", [=] {
    auto steps = std::make_shared<Steps>();
    const auto limit = df::placeholder<std::int32_t>(steps->graph, df::Shape{});
    const auto count = df::while_loop([&](auto i) { return i < limit; }, [](auto i) { return i + 1; },
                                      df::constant(steps->graph, 0), {.parallel_iterations = 1});
    steps->session = std::make_unique<df::Session>(steps->graph, options(threads));
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(limit), df::fetches(count)))>(
        steps->session->prepare(df::feeds(limit), df::fetches(count)));
    return [steps, step] { (*step)(10'000); };
  });
  // The time of the loop's kernels: its comparisons and additions, one behind the other in a graph.
  rows.row("kernels of 10000 iterations", [=] {
    auto steps = std::make_shared<Steps>();
    const auto limit = df::placeholder<std::int32_t>(steps->graph, df::Shape{});
    df::Output<std::int32_t> count = df::constant(steps->graph, 0);
    const auto one = df::constant(steps->graph, 1);
    std::vector<df::Operation> asked;
    for (int i = 0; i < 10'000; ++i) {
      asked.push_back((count < limit).operation());
      count = count + one;
    }
    const auto all = df::with_dependencies({df::group(asked)}, count);
    df::SessionOptions as_they_are = options(threads);
    as_they_are.passes.constant_folding = false;
    steps->session = std::make_unique<df::Session>(steps->graph, as_they_are);
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(limit), df::fetches(all)))>(
        steps->session->prepare(df::feeds(limit), df::fetches(all)));
    return [steps, step] { (*step)(10'000); };
  });
  rows.row("10000 calls of a function", [=] {
    auto steps = std::make_shared<Steps>();
    const auto x = df::placeholder<float>(steps->graph, df::Shape{});
    const auto twice = df::function(steps->graph, "twice", [](df::Output<float> y) { return y + y; });
    df::Output<float> sum = x;
    for (int i = 0; i < 10'000; ++i) sum = twice(sum);
    steps->session = std::make_unique<df::Session>(steps->graph, options(threads));
    auto step = std::make_shared<decltype(steps->session->prepare(df::feeds(x), df::fetches(sum)))>(
        steps->session->prepare(df::feeds(x), df::fetches(sum)));
    return [steps, step] { (*step)(0.0f); };
  });
  return rows.serve();
}
