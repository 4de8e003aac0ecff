// What grows with the size of a graph, a step or a session, and what gains from threads. usage: bench_scaling [ROWS
// REGEX]
//
// Rows of sizes are measured in turn, 1,000, 10,000, 100,000, 1,000, ...: the last column is the median over the rounds
// of what an item costs at the largest size over the smallest. A size that would take longer than `patience_s` is left
// out.
#include "interleaved.hpp"

#include <dflow/core/cancellation.hpp>
#include <dflow/dflow.hpp>

#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace df = dflow;

namespace {

/// Computes for 10 us on this machine, or does nothing, but says that it is worth a thread.
struct Work : df::Op<"Work", df::TypeList<float>> {
  struct Attrs {
    std::int64_t rounds = 0;
  };
  using Outputs = df::Out<>;
  static constexpr bool is_stateful = true;
  static void infer(df::InferContext&) {}
};

struct Nap : df::Op<"Nap", df::TypeList<float>> {
  using Outputs = df::Out<>;
  static constexpr bool is_stateful = true;
  static void infer(df::InferContext&) {}
};

float compute(std::int64_t rounds) {
  volatile float x = 1;
  for (std::int64_t i = 0; i < rounds; ++i) x = x * 0.999f + 0.001f;
  return x;
}

}  // namespace

template <> struct dflow::Kernel<Work, dflow::Cpu, float> {
  Work::Attrs attrs;
  double cost_ns(const KernelInit&) const { return 30'000; }
  void operator()(KernelContext&) const { compute(attrs.rounds); }
};

template <> struct dflow::Kernel<Nap, dflow::Cpu, float> {
  double cost_ns(const KernelInit&) const { return 1e8; }
  void operator()(KernelContext&) const { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }
};

namespace {

constexpr double patience_s = 20;
constexpr double must_be_flat = 1.3;

df::SessionOptions options(int threads) {
  return {.ops = df::standard_ops + df::ops<Work, Nap>, .num_threads = threads};
}

double wall_ns() { return df::bench::now_ns(df::bench::Clock::wall); }

template <class F> double ns_of(F&& f) {
  const double start = wall_ns();
  f();
  return wall_ns() - start;
}

using SizedRow = std::function<double(std::size_t size)>;  ///< nanoseconds of one run at that size

/// `per_item`: the run's time is shared by its items; else it should not depend on them at all.
void print_sizes(const std::string& name, const SizedRow& run_ns, bool per_item = true) {
  std::vector<std::size_t> sizes{1'000, 10'000, 100'000};
  std::vector<std::vector<double>> times(sizes.size());
  std::vector<double> whole_ns;  // of the first round, with all that is not timed
  const double start = wall_ns();
  for (int round = 0; round < 7 && (round == 0 || wall_ns() - start < patience_s * 1e9); ++round) {
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      if (round == 0 && s > 0) {
        const double growth = s > 1 ? whole_ns[s - 1] / whole_ns[s - 2] : 100;
        if (whole_ns[s - 1] * growth > patience_s * 1e9) {
          sizes.resize(s);
          break;
        }
      }
      const double before = wall_ns();
      times[s].push_back(run_ns(sizes[s]) / (per_item ? static_cast<double>(sizes[s]) : 1));
      if (round == 0) whole_ns.push_back(wall_ns() - before);
    }
  }
  std::printf("%-44s", name.c_str());
  for (std::size_t s = 0; s < times.size(); ++s) {
    s < sizes.size() ? std::printf(" %12.1f", df::bench::median(times[s])) : std::printf(" %12s", "-");
  }
  std::vector<double> ratios;
  for (std::size_t r = 0; r < times[0].size(); ++r) ratios.push_back(times[sizes.size() - 1][r] / times[0][r]);
  const double ratio = df::bench::median(ratios);
  std::printf(" ns%s   ratio %6.2f  must %.1f%s\n", per_item ? " an item" : "", ratio, must_be_flat,
              ratio > must_be_flat || sizes.size() < times.size() ? " MISSED" : "");
  std::fflush(stdout);
}

double first_run_ns(const df::Graph& graph, const df::SessionOptions& session_options,
                    std::span<const df::Operation> targets) {
  df::Session session(graph, session_options);
  return ns_of([&] { session.run_erased({}, nullptr, {}, {}, targets, {}); });
}

double null_nodes(std::size_t size) {
  df::Graph graph;
  df::Operation last = df::no_op(graph);
  for (std::size_t i = 1; i < size; ++i) {
    const auto after = graph.control_dependencies({last});
    last = df::no_op(graph);
  }
  df::Session session(graph, options(1));
  auto step = session.prepare(df::feeds(), df::fetches(last));
  step();
  return df::bench::time_ns(step, static_cast<int>(1'000'000 / size), df::bench::Clock::wall);
}

struct Fed {
  df::Graph graph;
  std::vector<df::Feed> feeds;
  std::vector<df::AnyOutput> edges;
};

std::unique_ptr<Fed> fed_edges(std::size_t size) {
  auto fed = std::make_unique<Fed>();
  for (std::size_t i = 0; i < size; ++i) {
    const auto x = df::placeholder<float>(fed->graph, df::Shape{});
    fed->feeds.emplace_back(x, 1.0f);
    fed->edges.push_back(-x);
  }
  return fed;
}

/// `runs` of the same step after `runs_before` of it.
double feeds_and_fetches(std::size_t size, std::size_t fetches, int runs_before) {
  const auto fed = fed_edges(size);
  std::vector<df::Operation> operations;
  for (const df::AnyOutput& edge : fed->edges) operations.push_back(edge.operation());
  const df::Operation all = df::group(operations);
  df::Session session(fed->graph, options(1));
  const std::span<const df::AnyOutput> edges(fed->edges.data(), fetches);
  std::vector<df::AnyTensor> results(fetches);
  const auto run = [&] { session.run_erased({}, nullptr, fed->feeds, edges, {{all}}, results); };
  for (int i = 0; i < runs_before; ++i) run();
  return ns_of(run);
}

double ready_units(std::size_t size) {
  df::Graph graph;
  const auto x = df::constant(graph, 1.0f);
  const auto first = df::no_op(graph);
  std::vector<df::Operation> units;
  for (std::size_t i = 0; i < size; ++i) {
    const auto after = graph.control_dependencies({first});
    units.push_back(df::apply<Work>(x));
  }
  const df::Operation last = df::group(units);
  df::SessionOptions two_threads = options(2);
  two_threads.inter_op = df::InterOp::parallel;
  df::Session session(graph, two_threads);
  auto step = session.prepare(df::feeds(), df::fetches(last));
  step();
  return ns_of(step);
}

double pending_cancellations(std::size_t size) {
  df::CancellationSource source;
  std::size_t called = 0;
  std::vector<df::CancellationRegistration> registrations;
  registrations.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    registrations.push_back(source.token().on_cancel([&called](const df::Status&) { ++called; }));
  }
  return ns_of([&] { source.cancel(); });
}

double small_fetch_of_a_large_graph(std::size_t size) {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, df::Shape{});
  df::Output<float> sum = x;
  for (std::size_t i = 0; i < size; ++i) sum = sum + x;
  df::Session session(graph, options(1));
  constexpr int fetches = 20;
  std::vector<df::Output<float>> edges;
  for (int i = 0; i < fetches; ++i) edges.push_back(-x);
  session.run({{x, 1.0f}}, -x);  // places the graph, which costs as much as it has nodes, once
  return ns_of([&] {
           for (const auto& edge : edges) session.run({{x, 1.0f}}, edge);
         }) /
         fetches;
}

double equal_nodes(std::size_t size) {
  df::Graph graph;
  const auto x = df::random_uniform<float>(graph, df::Shape{});
  std::vector<df::Operation> after, equal;
  // Equal but for what they wait for, so that none can be merged and all must be told apart.
  for (std::size_t i = 0; i < size; ++i) after.push_back(df::no_op(graph));
  for (std::size_t i = 0; i < size; ++i) {
    const auto scope = graph.control_dependencies({after[i]});
    equal.push_back((-x).operation());
  }
  const df::Operation last = df::group(equal);
  return first_run_ns(graph, options(1), {{last}});
}

double placement(std::size_t size) {
  df::Graph graph;
  std::vector<df::Operation> nodes;
  for (std::size_t i = 0; i < size; ++i) {
    const auto device = graph.device("/cpu:" + std::to_string(i % 4));
    nodes.push_back(df::no_op(graph));
  }
  const df::Operation last = df::group(nodes);
  df::SessionOptions four_devices = options(1);
  four_devices.num_cpu_devices = 4;
  return first_run_ns(graph, four_devices, {{last}});
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

void extended_graph() {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, df::Shape{});
  df::Output<float> sum = x;
  df::Session session(graph, options(1));
  const double memory = resident_megabytes(), start = wall_ns();
  std::vector<double> times;
  for (int i = 0; i < 5'000 && wall_ns() - start < patience_s * 1e9; ++i) {
    sum = sum + x;
    times.push_back(ns_of([&] { session.run({{x, 1.0f}}, sum); }));
  }
  const auto count = static_cast<std::ptrdiff_t>(times.size() / 10);
  const double first = df::bench::median({times.begin(), times.begin() + count});
  const double last = df::bench::median({times.end() - count, times.end()});
  std::printf("%-44s first tenth %.1f us, last %.1f us a run, %.2f us a node at the end, %.0f MB taken in %zu runs\n",
              "graph extended by one node and run", first / 1e3, last / 1e3,
              last / 1e3 / static_cast<double>(times.size()), resident_megabytes() - memory, times.size());
}

std::function<void()> independent_step(std::shared_ptr<df::Graph> graph, int threads,
                                       const std::function<df::Operation(const df::Output<float>&)>& node, int count) {
  const auto x = df::constant(*graph, 1.0f);
  std::vector<df::Operation> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back(node(x));
  const df::Operation last = df::group(nodes);
  auto session = std::make_shared<df::Session>(*graph, options(threads));
  auto step = std::make_shared<decltype(session->prepare(df::feeds(), df::fetches(last)))>(
      session->prepare(df::feeds(), df::fetches(last)));
  return [graph, session, step] { (*step)(); };
}

void independent_nodes() {
  const double once = df::bench::time_ns([] { compute(100'000); }, 20, df::bench::Clock::thread);
  const auto rounds = static_cast<std::int64_t>(10'000 / (once / 100'000));
  const auto work = [rounds](const df::Output<float>& x) { return df::apply<Work>(x, {.rounds = rounds}); };
  for (int threads = 2; threads <= df::available_cores(); threads *= 2) {
    const auto many = independent_step(std::make_shared<df::Graph>(), threads, work, 1'000);
    const auto one = independent_step(std::make_shared<df::Graph>(), 1, work, 1'000);
    const df::bench::Comparison c = df::bench::compare(many, one, df::bench::Clock::wall);
    std::printf("%-44s %12.2f ms   one thread %.2f ms   ratio %.2f  must %.2f%s\n",
                ("1,000 nodes of 10 us, threads " + std::to_string(threads)).c_str(), c.ours_ns / 1e6, c.peer_ns / 1e6,
                c.ratio, 0.9 * threads, c.ratio < 0.9 * threads ? " MISSED" : "");
  }
}

void naps() {
  for (const int n : {4, 16, 32, 64}) {
    const auto step = independent_step(
        std::make_shared<df::Graph>(), n, [](const auto& x) { return df::apply<Nap>(x); }, n);
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) times.push_back(ns_of(step));
    const double ms = df::bench::median(times) / 1e6;
    std::printf("%-44s %12.1f ms   must 110%s\n", (std::to_string(n) + " naps of 100 ms on as many threads").c_str(),
                ms, ms > 110 ? " MISSED" : "");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::regex wanted(argc > 1 ? argv[1] : "");
  const auto takes_part = [&](const std::string& name) { return std::regex_search(name, wanted); };
  if (takes_part("1,000 nodes of 10 us")) independent_nodes();
  if (takes_part("naps")) naps();
  std::printf("%-44s %12s %12s %12s\n", "cost of an item among", "1,000", "10,000", "100,000");
  const auto sizes = [&](const std::string& name, const SizedRow& run, bool per_item = true) {
    if (takes_part(name)) print_sizes(name, run, per_item);
  };
  sizes("null nodes", null_nodes);
  sizes("feeds, first run", [](std::size_t n) { return feeds_and_fetches(n, 0, 0); });
  sizes("feeds, later run", [](std::size_t n) { return feeds_and_fetches(n, 0, 2); });
  sizes("feeds and fetches, first run", [](std::size_t n) { return feeds_and_fetches(n, n, 0); });
  sizes("feeds and fetches, later run", [](std::size_t n) { return feeds_and_fetches(n, n, 2); });
  sizes("ready units", ready_units);
  sizes("pending cancellations", pending_cancellations);
  sizes("equal nodes, first run", equal_nodes);
  sizes("placement on 4 devices, first run", placement);
  sizes("small fetch out of as many nodes", small_fetch_of_a_large_graph, false);
  if (takes_part("graph extended")) extended_graph();
  return 0;
}
