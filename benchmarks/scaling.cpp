// Measures how costs grow with the size of a graph, a step or a session, and the gains from threads.
// usage: bench_scaling [ROWS REGEX]
//
// A row of sizes handles the same 100,000 items in 100 graphs, in 10 and in one. Each graph is timed after all others
// were built, so its items come from the same distance, the memory's, and only the size of the graph differs. The
// ratio is the median over the rounds of the cost of an item in the largest graph over the smallest. The column
// "alone" is one small graph by itself, which the caches hold. A size that would take longer than `patience_s` is left
// out.
#include "interleaved.hpp"

#include <dflow/core/cancellation.hpp>
#include <dflow/dflow.hpp>

#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
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

template <>
struct dflow::Kernel<Work, dflow::Cpu, float> {
  Work::Attrs attrs;
  double cost_ns(const KernelInit&) const { return 30'000; }
  void operator()(KernelContext&) const { compute(attrs.rounds); }
};

template <>
struct dflow::Kernel<Nap, dflow::Cpu, float> {
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

template <class F>
double ns_of(F&& f) {
  const double start = wall_ns();
  f();
  return wall_ns() - start;
}

using Timed = std::function<void()>;
/// Builds something of a size, and returns the function to be timed, which keeps alive all that it uses. The function
/// is called `warm_ups` times before.
struct SizedRow {
  std::string name;
  std::function<Timed(std::size_t size)> build;
  int warm_ups = 0;
  bool is_ours = true;
};

constexpr std::size_t sizes[] = {1'000, 10'000, 100'000};

/// Nanoseconds an item, with `graphs` of a size at once.
double item_ns(const SizedRow& row, std::size_t size, std::size_t graphs) {
  std::vector<Timed> all;
  for (std::size_t i = 0; i < graphs; ++i) all.push_back(row.build(size));
  for (int i = 0; i < row.warm_ups; ++i) {
    for (const Timed& timed : all) timed();
  }
  return ns_of([&] {
           for (const Timed& timed : all) timed();
         }) /
         static_cast<double>(size * graphs);
}

void print_sizes(const SizedRow& row) {
  constexpr std::size_t count = std::size(sizes), items = sizes[count - 1];
  std::vector<double> alone, times[count];
  const double start = wall_ns();
  std::size_t measured = count;
  for (int round = 0; round < 5 && (round == 0 || wall_ns() - start < patience_s * 1e9); ++round) {
    alone.push_back(item_ns(row, sizes[0], 1));
    for (std::size_t s = 0; s < measured; ++s) {
      times[s].push_back(item_ns(row, sizes[s], items / sizes[s]));
      if (round == 0 && wall_ns() - start > patience_s * 1e9) measured = s + 1;
    }
  }
  std::printf("%-36s %9.1f", row.name.c_str(), df::bench::median(alone));
  for (std::size_t s = 0; s < count; ++s) {
    s < measured ? std::printf(" %9.1f", df::bench::median(times[s])) : std::printf(" %9s", "-");
  }
  std::vector<double> ratios;
  for (std::size_t r = 0; r < times[measured - 1].size(); ++r) ratios.push_back(times[measured - 1][r] / times[0][r]);
  const double ratio = df::bench::median(ratios);
  std::printf(" ns an item   ratio %5.2f", ratio);
  if (row.is_ours) {
    std::printf("  must %.1f%s", must_be_flat, ratio > must_be_flat || measured < count ? " MISSED" : "");
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// The objects that the timed function of a row keeps alive.
struct Built {
  df::Graph graph;
  std::optional<df::Session> session;
  std::vector<df::Feed> feeds;
  std::vector<df::AnyOutput> fetches;
  std::vector<df::AnyTensor> results;
  std::vector<df::Operation> targets;

  void run() { session->run_erased({}, nullptr, feeds, fetches, targets, results); }
};

Timed run_of(std::shared_ptr<Built> built, const df::SessionOptions& session_options) {
  return [built, session_options] {
    if (!built->session) built->session.emplace(built->graph, session_options);
    built->run();
  };
}

/// The yardstick: the effect of the memory on the plainest graph, ten copies of records that each hold a name and an
/// input.
Timed plain_records(std::size_t size) {
  struct Record {
    std::string name;
    std::vector<std::size_t> inputs;
  };
  using Records = std::vector<std::unique_ptr<Record>>;
  auto records = std::make_shared<Records>();
  for (std::size_t i = 0; i < size; ++i) {
    records->push_back(std::make_unique<Record>(Record{"a name of a node in a graph " + std::to_string(i), {i}}));
  }
  return [records] {
    std::array<Records, 10> copies;
    const Records* last = records.get();
    for (Records& copy : copies) {
      for (const auto& record : *last) copy.push_back(std::make_unique<Record>(*record));
      last = &copy;
    }
  };
}

Timed null_nodes(std::size_t size) {
  auto built = std::make_shared<Built>();
  df::Operation last = df::no_op(built->graph);
  for (std::size_t i = 1; i < size; ++i) {
    const auto after = built->graph.control_dependencies({last});
    last = df::no_op(built->graph);
  }
  built->targets = {last};
  return run_of(built, options(1));
}

Timed feeds_and_fetches(std::size_t size, bool with_fetches) {
  auto built = std::make_shared<Built>();
  std::vector<df::Output<float>> fed;
  for (std::size_t i = 0; i < size; ++i) {
    const auto x = df::placeholder<float>(built->graph, df::Shape{});
    fed.push_back(x);
    const auto y = -x;
    built->targets.push_back(y.operation());
    if (with_fetches) built->fetches.push_back(y);
  }
  // The values are made after the graph, as a caller makes its feeds. Between the graph's nodes each value would be
  // alone on its page, and to find it would cost more than to run the step.
  for (const auto& x : fed) built->feeds.emplace_back(x, 1.0f);
  built->results.resize(built->fetches.size());
  built->targets = {df::group(built->targets)};
  return run_of(built, options(1));
}

Timed ready_units(std::size_t size) {
  auto built = std::make_shared<Built>();
  const auto x = df::constant(built->graph, 1.0f);
  const auto first = df::no_op(built->graph);
  std::vector<df::Operation> units;
  for (std::size_t i = 0; i < size; ++i) {
    const auto after = built->graph.control_dependencies({first});
    units.push_back(df::apply<Work>(x));
  }
  built->targets = {df::group(units)};
  df::SessionOptions two_threads = options(2);
  two_threads.inter_op = df::InterOp::parallel;
  return run_of(built, two_threads);
}

Timed pending_cancellations(std::size_t size) {
  struct Pending {
    df::CancellationSource source;
    std::size_t called = 0;
    std::vector<df::CancellationRegistration> registrations;
  };
  auto pending = std::make_shared<Pending>();
  for (std::size_t i = 0; i < size; ++i) {
    const auto count = [p = pending.get()](const df::Status&) { ++p->called; };
    pending->registrations.push_back(pending->source.token().on_cancel(count));
  }
  return [pending] { pending->source.cancel(); };
}

Timed equal_nodes(std::size_t size) {
  auto built = std::make_shared<Built>();
  df::Graph& graph = built->graph;
  const auto x = df::random_uniform<float>(graph, df::Shape{});
  std::vector<df::Operation> after, equal;
  // The nodes differ only in their control inputs, so none can be merged and all must be told apart.
  for (std::size_t i = 0; i < size; ++i) after.push_back(df::no_op(graph));
  for (std::size_t i = 0; i < size; ++i) {
    const auto scope = graph.control_dependencies({after[i]});
    equal.push_back((-x).operation());
  }
  built->targets = {df::group(equal)};
  return run_of(built, options(1));
}

Timed placement(std::size_t size) {
  auto built = std::make_shared<Built>();
  std::vector<df::Operation> nodes;
  for (std::size_t i = 0; i < size; ++i) {
    const auto device = built->graph.device("/cpu:" + std::to_string(i % 4));
    nodes.push_back(df::no_op(built->graph));
  }
  built->targets = {df::group(nodes)};
  df::SessionOptions four_devices = options(1);
  four_devices.num_cpu_devices = 4;
  return run_of(built, four_devices);
}

double small_fetch_ns(std::size_t size) {
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

void small_fetch_of_a_large_graph() {
  std::vector<double> times[std::size(sizes)], ratios;
  for (int round = 0; round < 7; ++round) {
    for (std::size_t s = 0; s < std::size(sizes); ++s) times[s].push_back(small_fetch_ns(sizes[s]));
    ratios.push_back(times[2].back() / times[0].back());
  }
  const double ratio = df::bench::median(ratios);
  std::printf("%-36s %9s", "small fetch out of as many nodes", "");
  for (const auto& of_size : times) std::printf(" %9.1f", df::bench::median(of_size));
  std::printf(" ns a run     ratio %5.2f  must %.1f%s\n", ratio, must_be_flat, ratio > must_be_flat ? " MISSED" : "");
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
  std::printf("%-36s %9s %9s %9s %9s\n", "cost of an item in graphs of", "alone", "1,000", "10,000", "100,000");
  const SizedRow rows[] = {
      {"plain records, copied ten times", plain_records, 0, false},
      {"null nodes", null_nodes, 2},
      {"feeds, first run", [](std::size_t n) { return feeds_and_fetches(n, false); }},
      {"feeds, later run", [](std::size_t n) { return feeds_and_fetches(n, false); }, 2},
      {"feeds and fetches, first run", [](std::size_t n) { return feeds_and_fetches(n, true); }},
      {"feeds and fetches, later run", [](std::size_t n) { return feeds_and_fetches(n, true); }, 2},
      {"ready units", ready_units, 1},
      {"pending cancellations", pending_cancellations},
      {"equal nodes, first run", equal_nodes},
      {"placement on 4 devices, first run", placement},
  };
  for (const SizedRow& row : rows) {
    if (takes_part(row.name)) print_sizes(row);
  }
  if (takes_part("small fetch out of as many nodes")) small_fetch_of_a_large_graph();
  if (takes_part("graph extended")) extended_graph();
  return 0;
}
